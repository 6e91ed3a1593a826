/**
 * Finds the current address of a node that no longer responds at its old address, or that has only called this node,
 * from its own and its agents' endpoint records.
 */
import { equalBytes } from '../../foundation/bytes.ts';
import { type Aid, nativeAid } from '../../foundation/identity/aid.ts';
import type { AgentLocation } from '../../network/links/types.ts';
import type { NodePlace } from '../../network/peers/dial.ts';

/** Agents of one node that are looked up before the node counts as not found. */
const MAX_LOOKED_UP = 4;

interface FreshResolver {
  /** Looks up an agent in the network without the cache. */
  locate(aid: Aid, options: { readonly fresh: true; readonly signal: AbortSignal }): Promise<AgentLocation>;
}

/**
 * The location of a node whose agents have communicated with local agents: from its own endpoint record, which is
 * updated first after a move, or from the record of one of its agents.
 * @param agentsHere the agents of the node that called or were called here, most recent first
 * @returns null if no agent of the node is known, or if no record names this node
 * @throws SvcError the abort reason
 */
export async function locateNode(
  nodeKey: Uint8Array,
  agentsHere: readonly Aid[],
  resolver: FreshResolver,
  signal: AbortSignal,
): Promise<NodePlace | null> {
  const agents = agentsHere.slice(0, MAX_LOOKED_UP);
  // Nodes that are dialed for a lookup must not cause lookups themselves.
  if (agents.length === 0) return null;
  for (const aid of new Set([nativeAid(nodeKey), ...agents])) {
    try {
      const place = await resolver.locate(aid, { fresh: true, signal });
      if (equalBytes(place.nodeKey, nodeKey)) return place;
    } catch (error) {
      // The node or agent has no record.
      if (signal.aborted) throw error;
    }
  }
  return null;
}
