/** Nodes to which packets were lost lately: the next connection there need not find that out anew. */
import type { Clock } from '../../../foundation/clock.ts';
import { LruCache } from '../../../foundation/lru-cache.ts';

/** How long the way to a node counts as one that loses packets, milliseconds. */
const LOSSY_MS: number = 10 * 60_000;
const MAX_LOSSY_NODES = 1024;

export class LossyNodes {
  readonly #nodes: LruCache<string, true>;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#nodes = new LruCache({ maxEntries: MAX_LOSSY_NODES, ttlMs: LOSSY_MS }, dependencies);
  }

  has(node: string): boolean {
    return this.#nodes.get(node) !== undefined;
  }

  add(node: string): void {
    this.#nodes.set(node, true);
  }
}
