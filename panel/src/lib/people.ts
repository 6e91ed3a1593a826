/** The other agents and nodes of the network, from what this node knows about them. */
import type { Output } from './api.ts';

type Link = Output<'nodeLinks'>['links'][number];
type Peer = Output<'nodePeers'>['peers'][number];
type Recent = Output<'discoverRecent'>['entries'][number];
type Book = Output<'addressBookGet'>;

export interface AgentRow {
  readonly aid: string;
  /** Service names, without repetitions. */
  readonly offers: readonly string[];
  /** The connection to its node, if there is one. */
  readonly link: Link | undefined;
  /** When it last published a service. Undefined if this is not known. */
  readonly seenAt: string | undefined;
}

export interface NodeRow {
  /** Empty if it is not known. */
  readonly node: string;
  readonly address: string;
  readonly link: Link | undefined;
  readonly rttMs: number | null;
  readonly seenAt: string | undefined;
  readonly isHelper: boolean;
  readonly isBootstrap: boolean;
}

interface Known {
  readonly links: readonly Link[];
  readonly recent: readonly Recent[];
  readonly book: Pick<Book, 'aliases' | 'favorites'>;
  /** Agents with which an agent of this node chats. */
  readonly friends: readonly string[];
  /** The agents of this node, which are omitted. */
  readonly own: ReadonlySet<string>;
}

/** Connected agents come first, then the last seen. */
export function agentRows({ links, recent, book, friends, own }: Known): readonly AgentRow[] {
  const current = links.filter((link) => link.current);
  const linkOf = new Map(current.flatMap((link) => link.agents.map(({ aid }): [string, Link] => [aid, link])));
  const offers = Map.groupBy(recent, ({ aid }): string => aid);
  const aids = [
    ...linkOf.keys(),
    ...offers.keys(),
    ...Object.keys(book.aliases),
    ...book.favorites.map(({ aid }) => aid),
    ...friends,
  ];
  return [...new Set(aids)]
    .filter((aid) => !own.has(aid))
    .map((aid): AgentRow => {
      const seen = offers.get(aid) ?? [];
      const times = seen.map(({ published_at }) => published_at).toSorted();
      const services = [...new Set(seen.map(({ service }) => service))].toSorted();
      return { aid, offers: services, link: linkOf.get(aid), seenAt: times.at(-1) };
    })
    .toSorted(bySight);
}

/** Connected nodes come first, then the last seen. */
export function nodeRows(links: readonly Link[], peers: readonly Peer[]): readonly NodeRow[] {
  const current = links.filter((link) => link.current);
  const linkOf = new Map(current.map((link) => [link.node as string, link]));
  const known = peers.map((peer): NodeRow => {
    const { node, address, rtt_ms: rttMs, last_seen: seenAt, is_helper: isHelper, is_bootstrap: isBootstrap } = peer;
    return { node: node ?? '', address, link: linkOf.get(node ?? ''), rttMs, seenAt, isHelper, isBootstrap };
  });
  const listed = new Set(known.map(({ node }) => node));
  const linked = current
    .filter(({ node }) => !listed.has(node))
    .map((link): NodeRow => {
      const { node, remote_addr: address, rtt_ms: rttMs, use } = link;
      return { node, address, link, rttMs, seenAt: undefined, isHelper: use === 'helper', isBootstrap: false };
    });
  return [...linked, ...known].toSorted(bySight);
}

function bySight(a: AgentRow | NodeRow, b: AgentRow | NodeRow): number {
  return Number(b.link !== undefined) - Number(a.link !== undefined) || (b.seenAt ?? '').localeCompare(a.seenAt ?? '');
}
