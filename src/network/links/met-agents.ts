/** Which agents here have lately spoken with which agents of a node: links between them were opened. */
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';

/** Nodes of which it is remembered. */
const MAX_MET_NODES = 256;
/** Pairs of agents that are remembered of one node. */
export const MAX_MET_PAIRS = 32;
/** For how long a pair is remembered after its last link was opened, milliseconds. */
export const MET_MS = 3_600_000;

/** An agent here, and one of the other node; both were proven. */
export interface AgentPair {
  readonly local: Aid;
  readonly remote: Aid;
}

export class MetAgents {
  readonly #clock: Clock;
  /** By the hex of the node's key, then by both AIDs. */
  readonly #nodes = new LruCache<string, LruCache<string, AgentPair>>({ maxEntries: MAX_MET_NODES });

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** A link between the two was opened. */
  note(nodeKey: Uint8Array, pair: AgentPair): void {
    const node = toHex(nodeKey);
    const options = { maxEntries: MAX_MET_PAIRS, ttlMs: MET_MS };
    const pairs = this.#nodes.get(node) ?? new LruCache<string, AgentPair>(options, { clock: this.#clock });
    pairs.set(`${pair.local} ${pair.remote}`, pair);
    this.#nodes.set(node, pairs);
  }

  /** Those who spoke lately, the last to begin comes last. */
  with(nodeKey: Uint8Array): readonly AgentPair[] {
    return this.#nodes.peek(toHex(nodeKey))?.values() ?? [];
  }
}
