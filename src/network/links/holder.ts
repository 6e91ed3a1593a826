/** The holder of a quota share, derived from a link or session. */
import { toHex } from '../../foundation/bytes.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import type { AccessRequest, LinkStream } from './types.ts';

/** Node name for agents on this daemon. */
const HERE = 'here';

/** Both ends of a link. */
export type LinkEnds = Pick<LinkStream, 'caller' | 'called' | 'nodeKey' | 'path'>;

/** Both ends of a requested link. */
export type HolderRequest = Pick<AccessRequest, 'caller' | 'called' | 'nodeKey' | 'source'>;

/**
 * The pair of agents on a link.
 * @param named true if the owner of the called agent named the caller
 * @param prefix separates shares of the same pair
 */
export function pairHolder(link: LinkEnds, named: boolean, prefix = ''): QuotaHolder {
  const { caller, called, nodeKey } = link;
  return requestHolder({ caller, called, nodeKey, source: link.path().source }, named, prefix);
}

/** As `pairHolder`, for a requested link. */
export function requestHolder(
  { caller, called, nodeKey, source }: HolderRequest,
  named: boolean,
  prefix = '',
): QuotaHolder {
  const key = `${prefix}${caller} ${called}`;
  if (nodeKey === null) return { key, node: HERE, source: null, named: true };
  return { key, node: toHex(nodeKey), source, named };
}
