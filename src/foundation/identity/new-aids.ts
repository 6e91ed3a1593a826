/** AIDs whose keys were made here a moment ago: nobody had them before, so the network holds nothing of or for them. */
import type { Clock } from '../clock.ts';
import { LruCache } from '../lru-cache.ts';
import type { Aid } from './aid.ts';

/** Milliseconds for which an AID counts as new: meanwhile hardly anybody has used its keys on another machine. */
const NEW_MS = 2000;
/** New AIDs that are remembered. */
const MAX_NEW = 256;

export class NewAids {
  readonly #clock: Clock;
  /** When each was made: Unix milliseconds. */
  readonly #made = new LruCache<Aid, number>({ maxEntries: MAX_NEW });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be called when the keys of an AID were made. */
  add(aid: Aid): void {
    this.#made.set(aid, this.#clock.now());
  }

  /** Whether the keys of an AID were made here a moment ago. */
  has(aid: Aid): boolean {
    const age = this.#clock.now() - (this.#made.get(aid) ?? Number.NEGATIVE_INFINITY);
    return age >= 0 && age < NEW_MS;
  }

  /** An agent was deleted: what it published may still be there. */
  forget(aid: Aid): void {
    this.#made.delete(aid);
  }
}
