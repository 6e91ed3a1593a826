/**
 * The access that open offers grant: one agent may read one file. An entry that denies the agent by name overrides the
 * offer.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { AccessRequest } from '../../network/links/types.ts';

export class OfferAccess {
  readonly #store: FileOfferStore;
  readonly #clock: Clock;
  readonly #isDenied: (called: Aid, caller: Aid) => boolean;
  /** Bytes read of offered files, by sender and offer. */
  readonly #read = new Map<Aid, Map<string, number>>();

  /**
   * @param isDenied whether the owner of an agent has denied a caller by its AID
   */
  constructor(store: FileOfferStore, clock: Clock, isDenied: (called: Aid, caller: Aid) => boolean) {
    this.#store = store;
    this.#clock = clock;
    this.#isDenied = isDenied;
  }

  /**
   * Whether an authenticated caller may read an offered file.
   * @param offerId null when a link opens. Each request on it is checked again
   */
  mayRead({ purpose, called, caller }: AccessRequest, offerId: string | null): boolean {
    // protocol-notes.md, step 15
    return (
      purpose === 'object' &&
      !this.#isDenied(called, caller) &&
      this.#store.isOffered(called, caller, offerId, this.#clock.now())
    );
  }

  /** Returns a callback for the progress of reading an offered file. */
  reading({ called }: AccessRequest, offerId: string): (bytes: number) => void {
    return (bytes) => {
      const ofAgent = this.#read.get(called) ?? new Map<string, number>();
      this.#read.set(called, ofAgent.set(offerId, bytes));
    };
  }

  /** How far the file of an offer was read, since the start or the last `forget`, bytes. */
  readBytes(aid: Aid, offerId: string): number {
    return this.#read.get(aid)?.get(offerId) ?? 0;
  }

  /** Discards the progress of all offers of an agent. */
  forget(aid: Aid): void {
    this.#read.delete(aid);
  }
}
