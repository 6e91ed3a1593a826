/** New agents: the makers of their keys, and the AIDs whose keys were just created here. */
import type { Clock } from '../clock.ts';
import { LruCache } from '../lru-cache.ts';
import type { Aid } from './aid.ts';

/** How long an AID counts as new, in milliseconds. Its keys are unlikely to be used on another machine this early. */
const NEW_MS = 2000;
/** Maximum number of new AIDs. */
const MAX_NEW = 256;

/** Tracks AIDs whose keys were just created here. The network cannot have records of them or notes for them yet. */
export class NewAids {
  readonly #clock: Clock;
  /** Creation times in Unix milliseconds. */
  readonly #made = new LruCache<Aid, number>({ maxEntries: MAX_NEW });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call when the keys of an AID were created. */
  add(aid: Aid): void {
    this.#made.set(aid, this.#clock.monotonic());
  }

  /** True if the keys of an AID were just created here. */
  has(aid: Aid): boolean {
    const age = this.#clock.monotonic() - (this.#made.get(aid) ?? Number.NEGATIVE_INFINITY);
    return age >= 0 && age < NEW_MS;
  }

  /** Call when an agent is deleted: its records may still be in the network. */
  forget(aid: Aid): void {
    this.#made.delete(aid);
  }
}
