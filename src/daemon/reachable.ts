/** Whether other nodes reach this one without its help. */
import type { Reachability } from '../network/dht/types.ts';

/** Undefined where nobody can know: no other node is there to try, or those that are have not said yet. */
export function reachableFromPeers({ peers, natType, inRoutingTables }: Reachability): boolean | undefined {
  return peers === 0 || natType === 0 ? undefined : inRoutingTables;
}
