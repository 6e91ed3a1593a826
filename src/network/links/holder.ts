/** Who holds a share of a quota, by the link or session that it comes over. */
import { toHex } from '../../foundation/bytes.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import type { KnownNodes } from '../known-nodes.ts';
import type { NodeSession } from './node-session.ts';
import type { LinkStream } from './types.ts';

/** Node name of the agents on this daemon. */
const HERE = 'here';

/**
 * The pair of agents on a link.
 * @param named the owner of the called agent let the caller in by name
 */
export function pairHolder(
  link: Pick<LinkStream, 'caller' | 'called' | 'nodeKey' | 'path'>,
  named: boolean,
): QuotaHolder {
  const { caller, called, nodeKey } = link;
  if (nodeKey === null) return { key: `${caller} ${called}`, node: HERE, source: null, named: true };
  return { key: `${caller} ${called}`, node: toHex(nodeKey), source: link.path().source, named };
}

/** The node at the other end of a session. */
export function sessionHolder(
  { nodeId, there, connection }: Pick<NodeSession, 'nodeId' | 'there' | 'connection'>,
  known: Pick<KnownNodes, 'has'>,
): QuotaHolder {
  return { node: nodeId, source: connection.path.source, named: known.has(there.nodeKey) };
}
