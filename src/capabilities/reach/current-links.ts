/** This node's connections to others, and the nodes of its routing table. */
import type { LinkUse } from '../../foundation/domain/reach.ts';
import { type Aid, nativeAid, nativePublicKey } from '../../foundation/identity/aid.ts';
import type { ConnectionPool } from '../../network/links/connection-pool.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { AgentPair } from '../../network/links/met-agents.ts';
import type { ConnectionView } from '../../network/links/views.ts';
import type { ChosenHelpers } from '../../network/reachability/chosen-helpers.ts';
import type { RecordDht } from '../../network/records/record-dht.ts';
import type { Neighbour } from '../../network/records/types.ts';

/** A remote agent and the local agents that communicate with it. */
export interface RemoteAgent {
  readonly aid: Aid;
  /** Its label in the address book; null if it has none. */
  readonly label: string | null;
  readonly localAids: readonly Aid[];
}

export interface LinkSummary extends ConnectionView {
  readonly agents: readonly RemoteAgent[];
  readonly use: LinkUse;
}

export interface KnownPeer extends Neighbour {
  /** The AID of the key that it claims. */
  readonly node: Aid | null;
  readonly isHelper: boolean;
}

export interface CurrentLinksDependencies {
  readonly pool: Pick<ConnectionPool, 'connections'>;
  readonly links: Pick<AgentLinks, 'pairsWith'>;
  readonly records: Pick<RecordDht, 'neighbours'>;
  readonly helpers: Pick<ChosenHelpers, 'has' | 'addresses' | 'current'>;
  /** Labels of the address book, by AID. */
  readonly labels: () => Readonly<Record<string, string>>;
}

function agentsIn(pairs: readonly AgentPair[], labels: Readonly<Record<string, string>>): RemoteAgent[] {
  const locals = Map.groupBy(pairs, ({ remote }) => remote);
  return [...locals].map(([aid, met]) => ({
    aid,
    label: labels[aid] ?? null,
    localAids: met.map(({ local }) => local),
  }));
}

/** The open connections, grouped by node. */
export function listLinks({ pool, links, helpers, labels }: CurrentLinksDependencies): readonly LinkSummary[] {
  const names = labels();
  const standing = pool.connections().map((view): LinkSummary => {
    const key = nativePublicKey(view.node);
    const isHelper = key !== null && view.current && helpers.has(key);
    const use = isHelper ? 'helper' : 'all';
    return { ...view, use, agents: key === null ? [] : agentsIn(links.pairsWith(key), names) };
  });
  return [...Map.groupBy(standing, ({ node }) => node).values()].flat();
}

/** The nodes of the routing table, most recently heard first. */
export function listPeers({ records, helpers }: CurrentLinksDependencies): readonly KnownPeer[] {
  const isHelper = ({ host, port, nodeKey }: Neighbour): boolean =>
    (nodeKey !== null && helpers.has(nodeKey)) ||
    helpers.addresses.some((helper) => helper.host === host && helper.port === port);
  return records
    .neighbours()
    .map((one) => ({ ...one, node: one.nodeKey === null ? null : nativeAid(one.nodeKey), isHelper: isHelper(one) }))
    .sort((a, b) => b.lastSeen - a.lastSeen);
}

/** The connection that new streams to a node use; null if there is none. */
export function currentLink(pool: CurrentLinksDependencies['pool'], nodeKey: Uint8Array): ConnectionView | null {
  const aid = nativeAid(nodeKey);
  return pool.connections().find(({ current, node }) => current && node === aid) ?? null;
}
