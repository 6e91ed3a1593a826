/** The current page and its links, on this node or on another one (`#/via/<aid>/…`). */
import { useEffect, useState } from 'preact/hooks';
import { baseOf } from './api.ts';
import { hashOf, parseHash, type Route } from './route.ts';
import { tabStorage } from './storage.ts';

export interface Place extends Route {
  /** The viewed node. Null for this node. */
  readonly node: string | null;
  /** The base path of its API. */
  readonly base: string;
}

/** The current place. */
export function here(): Place {
  const { path, query } = parseHash(location.hash);
  const node = path[0] === 'via' ? (path[1] ?? null) : null;
  return { path: node === null ? path : path.slice(2), query, node, base: baseOf(node) };
}

/** Identifies a page. Changes of the query do not change the page. */
export function pageOf({ node, path }: Place): string {
  return `${node ?? ''} ${path.join('/')}`;
}

const LOOKED_AT = 'svcd-looked-at';

/** Nodes that the user chose to view in this tab. */
function chosen(): readonly string[] {
  return tabStorage.get(LOOKED_AT).split(' ');
}

/** True if the user chose to view this node. Following a link is not a choice. */
export function isChosen(node: string): boolean {
  return chosen().includes(node);
}

/** Stores that the user chose to view a node, and opens it. */
export function viewNode(node: string, path: readonly string[] = []): void {
  if (!isChosen(node)) tabStorage.set(LOOKED_AT, [...chosen(), node].join(' ').trim());
  location.hash = hashOf(['via', node, ...path]);
}

/** The link to a path on the viewed node. */
export function href(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const { node } = here();
  return hashOf(node === null ? path : ['via', node, ...path], query);
}

export function go(path: readonly string[], query: Readonly<Record<string, string>> = {}): void {
  location.hash = href(path, query);
}

/** Remembers the page. The returned function opens another path, unless the user has left the page meanwhile. */
export function returnFromHere(): (path: readonly string[]) => void {
  const page = pageOf(here());
  return (path) => {
    if (pageOf(here()) === page) go(path);
  };
}

/** Changes the query in the hash, without a new entry in the history. */
export function keep(changes: Readonly<Record<string, string>>): void {
  const { path, query } = here();
  location.replace(href(path, { ...query, ...changes }));
}

/** The current place. The component renders again when it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const change = (): void => setPlace(here());
    addEventListener('hashchange', change);
    change();
    return () => removeEventListener('hashchange', change);
  }, []);
  return place;
}
