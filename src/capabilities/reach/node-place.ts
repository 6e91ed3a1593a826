/** Where a node is that does not answer where it was, or has only ever called here: it and its agents have said so. */
import { equalBytes } from '../../foundation/bytes.ts';
import { type Aid, nativeAid } from '../../foundation/identity/aid.ts';
import type { NodePlace } from '../../network/links/dial.ts';
import type { AgentLocation } from '../../network/links/types.ts';

/** Agents of one node that are looked up before it counts as not to be found. */
const MAX_LOOKED_UP = 4;

interface NodePlaceDependencies {
  readonly resolver: {
    /** Where an agent is, asked of the network anew. */
    locate(aid: Aid, options: { readonly fresh: true; readonly signal: AbortSignal }): Promise<AgentLocation>;
  };
  /** The agents of a node that were called there, or have called here, the last first. */
  readonly agentsOn: (nodeKey: Uint8Array) => readonly Aid[];
}

/**
 * The place of a node with whose agents those here have spoken: by its own endpoint record, which goes out first where
 * it has moved, or by that of one of the agents.
 * @returns null where nothing is known of its agents, or none of them names this node
 * @throws SvcError the signal's reason
 */
export async function placeOfNode(
  nodeKey: Uint8Array,
  { resolver, agentsOn }: NodePlaceDependencies,
  signal: AbortSignal,
): Promise<NodePlace | null> {
  const agents = agentsOn(nodeKey).slice(0, MAX_LOOKED_UP);
  // One of the record network that is dialled for a look-up would be looked up itself.
  if (agents.length === 0) return null;
  for (const aid of new Set([nativeAid(nodeKey), ...agents])) {
    try {
      const place = await resolver.locate(aid, { fresh: true, signal });
      if (equalBytes(place.nodeKey, nodeKey)) return place;
    } catch (error) {
      // It has published nothing.
      if (signal.aborted) throw error;
    }
  }
  return null;
}
