/**
 * Nodes that can evict strangers: nodes that an agent here called, and nodes of agents that the owner admitted by name.
 * A stranger cannot add itself: its own links, dials for the record network and lookups for its notes do not count.
 */
import { toHex } from '../foundation/bytes.ts';
import { LruCache } from '../foundation/lru-cache.ts';

/** Maximum number of stored nodes. The least recently used node is evicted. */
const MAX_KNOWN_NODES = 4096;

export class KnownNodes {
  readonly #nodes = new LruCache<string, true>({ maxEntries: MAX_KNOWN_NODES });

  note(nodeKey: Uint8Array): void {
    this.#nodes.set(toHex(nodeKey), true);
  }

  has(nodeKey: Uint8Array): boolean {
    return this.#nodes.has(toHex(nodeKey));
  }
}
