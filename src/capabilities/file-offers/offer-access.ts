/**
 * The access that open offers grant: one agent may read one object. An entry that denies the agent by name overrides
 * the offer.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { AccessRequest } from '../../network/links/types.ts';

export class OfferAccess {
  readonly #store: Pick<FileOfferStore, 'isOffered'>;
  readonly #clock: Clock;
  readonly #isDenied: (called: Aid, caller: Aid) => boolean;
  /** Bytes read of offered objects, by sender, recipient and object. */
  readonly #read = new Map<Aid, Map<string, number>>();

  /**
   * @param isDenied whether the owner of an agent has denied a caller by its AID
   */
  constructor(store: Pick<FileOfferStore, 'isOffered'>, clock: Clock, isDenied: (called: Aid, caller: Aid) => boolean) {
    this.#store = store;
    this.#clock = clock;
    this.#isDenied = isDenied;
  }

  /**
   * Whether an authenticated caller may read an object because of an offer.
   * @param objectId null when a link opens. Each request on it is checked again
   */
  mayRead({ purpose, called, caller }: AccessRequest, objectId: string | null): boolean {
    // protocol-notes.md, step 15
    return (
      purpose === 'object' &&
      !this.#isDenied(called, caller) &&
      this.#store.isOffered(called, caller, objectId, this.#clock.now())
    );
  }

  /** Returns a callback for the progress of reading an object, or null if the object is not offered to the reader. */
  reading({ called, caller }: AccessRequest, objectId: string): ((bytes: number) => void) | null {
    if (!this.#store.isOffered(called, caller, objectId, this.#clock.now())) return null;
    return (bytes) => {
      const ofAgent = this.#read.get(called) ?? new Map<string, number>();
      this.#read.set(called, ofAgent.set(keyOf(caller, objectId), bytes));
    };
  }

  /** How far another agent has read an object of a local one, since the start or the last `forget`, bytes. */
  readBytes(aid: Aid, peer: Aid, objectId: string): number {
    return this.#read.get(aid)?.get(keyOf(peer, objectId)) ?? 0;
  }

  /** Discards the progress of all objects of an agent. */
  forget(aid: Aid): void {
    this.#read.delete(aid);
  }
}

function keyOf(peer: Aid, objectId: string): string {
  return `${peer} ${objectId}`;
}
