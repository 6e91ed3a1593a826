/** Public names that agents of this node hold, and the entry for names of agents on other nodes. */
import { Entry } from '../../capabilities/entry/entry.ts';
import { EntryNames } from '../../capabilities/entry/entry-names.ts';
import { NameHolder } from '../../capabilities/public-names/name-holder.ts';
import { descriptorLimit } from '../../foundation/descriptors.ts';
import { EntryStore } from '../../foundation/store/entry.ts';
import { PublicNameStore } from '../../foundation/store/public-names.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import { relayByteLimits } from '../../network/reachability/relay.ts';
import { RelayBudgets } from '../../network/reachability/relay-budgets.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';

export function buildPublicNames(
  { life, clock, parts, store, meta, config, node }: Foundation,
  { pool, records, reach }: Network,
  { registry, onDeleted }: Agents,
  links: AgentLinks,
) {
  const publicNames = new NameHolder({
    ...parts,
    store: new PublicNameStore(store),
    links,
    memory: meta,
    network: records,
    keep: (nodeKey) => pool.keep(nodeKey),
    isLocal: (aid) => registry.identity(aid) !== null,
  });
  life.add('acting', publicNames);
  life.defer(pool.onPathChange(({ nodeKey, path }) => (path === null ? publicNames.onLost(nodeKey) : undefined)));
  onDeleted(() => publicNames.forget());
  const entryNames = new EntryNames(config.public_names, new EntryStore(store), clock);
  const limits = relayByteLimits(config.entry_bytes_per_second, config.entry_bytes_per_day);
  const entry = new Entry(
    { nodeAid: node.aid, connections: config.entry_connections, proxies: config.entry_proxies },
    { ...parts, names: entryNames, links, budgets: new RelayBudgets(limits, { clock }), descriptors: descriptorLimit },
  );
  life.add('answering', entry);
  reach.lending.routeBy(entry);
  return { publicNames, entry, entryNames };
}
