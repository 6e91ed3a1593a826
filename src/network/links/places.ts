/** Where nodes were looked for last, for who has to find another way to one that is in use. */
import { toHex } from '../../foundation/bytes.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { NodePlace } from './dial.ts';

/** Nodes that are remembered; the least recently dialled one is forgotten first. */
const MAX_PLACES = 1024;

/** True where somebody else, or something, brings us together with the node. */
function isMet({ helpers, meeting }: NodePlace): boolean {
  return helpers.length > 0 || meeting !== undefined;
}

export class Places {
  /** By the hex of the node's key. */
  readonly #places = new LruCache<string, NodePlace>({ maxEntries: MAX_PLACES });

  /** Remembers a place, unless more is known than it says. */
  note(place: NodePlace): void {
    const node = toHex(place.nodeKey);
    const known = this.#places.peek(node);
    const isPoorer = !isMet(place) && known !== undefined && isMet(known);
    if (!isPoorer) this.#places.set(node, place);
  }

  /** Null for a node that was never dialled. */
  of(nodeKey: Uint8Array): NodePlace | null {
    return this.#places.get(toHex(nodeKey)) ?? null;
  }
}
