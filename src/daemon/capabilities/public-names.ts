/** Public names that agents of this node hold. */
import { NameHolder } from '../../capabilities/public-names/name-holder.ts';
import { PublicNameStore } from '../../foundation/store/public-names.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';

export function buildPublicNames(
  { life, parts, store }: Foundation,
  { pool, records }: Network,
  { registry, onDeleted }: Agents,
  links: AgentLinks,
) {
  const publicNames = new NameHolder({
    ...parts,
    store: new PublicNameStore(store),
    links,
    network: records,
    keep: (nodeKey) => pool.keep(nodeKey),
    isLocal: (aid) => registry.identity(aid) !== null,
  });
  life.add('acting', publicNames);
  life.defer(pool.onPathChange(({ nodeKey, path }) => (path === null ? publicNames.onLost(nodeKey) : undefined)));
  onDeleted(() => publicNames.forget());
  return { publicNames };
}
