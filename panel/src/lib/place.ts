/** Where the page is, and where links lead: on this node, or on another one that is looked at by `#/via/<aid>/…`. */
import { useEffect, useState } from 'preact/hooks';
import { baseOf } from './api.ts';
import { keptForTab } from './kept.ts';
import { hashOf, parseHash, type Route } from './route.ts';

export interface Place extends Route {
  /** The node that is looked at; null: this one. */
  readonly node: string | null;
  /** Below this path its API answers. */
  readonly base: string;
}

/** Where the page is now. */
export function here(): Place {
  const { path, query } = parseHash(location.hash);
  const node = path[0] === 'via' ? (path[1] ?? null) : null;
  return { path: node === null ? path : path.slice(2), query, node, base: baseOf(node) };
}

/** A page in a word: what changes in its query leaves it the same page. */
export function pageOf({ node, path }: Place): string {
  return `${node ?? ''} ${path.join('/')}`;
}

const LOOKED_AT = 'svcd-looked-at';

/** Nodes that somebody chose to look at in this tab. */
function chosen(): readonly string[] {
  return keptForTab.get(LOOKED_AT).split(' ');
}

/** True where the user chose to look at this node: a link from elsewhere is no choice. */
export function isChosen(node: string): boolean {
  return chosen().includes(node);
}

/** Notes that the user chose to look at a node, and goes there. */
export function lookAt(node: string, path: readonly string[] = []): void {
  if (!isChosen(node)) keptForTab.set(LOOKED_AT, [...chosen(), node].join(' ').trim());
  location.hash = hashOf(['via', node, ...path]);
}

/** The link to a path on the node that is looked at. */
export function href(path: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const { node } = here();
  return hashOf(node === null ? path : ['via', node, ...path], query);
}

export function go(path: readonly string[], query: Readonly<Record<string, string>> = {}): void {
  location.hash = href(path, query);
}

/** Remembers the page; what it returns goes somewhere else from there, unless the user has left it meanwhile. */
export function leaver(): (path: readonly string[]) => void {
  const page = pageOf(here());
  return (path) => {
    if (pageOf(here()) === page) go(path);
  };
}

/** Changes what a screen keeps in the hash, without a new entry in the history. */
export function keep(changes: Readonly<Record<string, string>>): void {
  const { path, query } = here();
  location.replace(href(path, { ...query, ...changes }));
}

/** The place, again whenever it changes. */
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
