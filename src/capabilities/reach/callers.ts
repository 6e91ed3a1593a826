/** Where a node is that has only ever called here: its agents have said so to the network. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NodePlace } from '../../network/links/dial.ts';
import type { AgentPair } from '../../network/links/met-agents.ts';
import type { AgentLocation } from '../../network/links/types.ts';

/** Agents of one node that are looked up before it counts as not to be found. */
const MAX_LOOKED_UP = 4;

interface CallersDependencies {
  readonly resolver: {
    /** Where an agent is, asked of the network anew. */
    locate(aid: Aid, options: { readonly fresh: true; readonly signal: AbortSignal }): Promise<AgentLocation>;
  };
  /** The agents that spoke lately over connections to a node; both were proven. */
  readonly pairsWith: (nodeKey: Uint8Array) => readonly AgentPair[];
}

/**
 * The place of a node, by the endpoint record of one of its agents that has called here lately.
 * @returns null where none of them names this node
 * @throws SvcError the signal's reason
 */
export async function placeOfCaller(
  nodeKey: Uint8Array,
  { resolver, pairsWith }: CallersDependencies,
  signal: AbortSignal,
): Promise<NodePlace | null> {
  const remotes = new Set(
    pairsWith(nodeKey)
      .toReversed()
      .map(({ remote }) => remote),
  );
  for (const aid of [...remotes].slice(0, MAX_LOOKED_UP)) {
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
