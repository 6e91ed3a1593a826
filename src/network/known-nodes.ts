/**
 * Nodes for which strangers make room: those that an agent here called, and those whose agents the owner let in by name.
 * A stranger cannot add itself: a link that it opens, a dial for the record network and a look at its note do not count.
 */
import { toHex } from '../foundation/bytes.ts';
import { LruCache } from '../foundation/lru-cache.ts';

/** Nodes that are remembered; the one that was not met for longest is forgotten first. */
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
