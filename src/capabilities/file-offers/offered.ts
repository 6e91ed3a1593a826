/**
 * What an open offer opens: the one object that it is of, to the one agent that it was made to. Who is denied by name
 * stays out, and nothing else than objects is looked at.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { AccessRequest } from '../../network/links/types.ts';

export interface OfferedObjectsDependencies {
  readonly store: Pick<FileOfferStore, 'isOffered'>;
  readonly clock: Clock;
  /** True where the owner of an agent has shut a caller out by its AID. */
  readonly isDenied: (called: Aid, caller: Aid) => boolean;
}

export class OfferedObjects {
  readonly #deps: OfferedObjectsDependencies;
  /** Bytes that were read of what is offered, by who offers, to whom, and the object. */
  readonly #read = new Map<Aid, Map<string, number>>();

  constructor(dependencies: OfferedObjectsDependencies) {
    this.#deps = dependencies;
  }

  /**
   * True where a proven caller may read an object because it was offered to it.
   * @param objectId null for a link on which nothing has been asked for yet: each request on it asks again
   */
  mayRead({ purpose, called, caller }: AccessRequest, objectId: string | null): boolean {
    // protocol-notes.md, step 15
    const { store, clock, isDenied } = this.#deps;
    return purpose === 'object' && !isDenied(called, caller) && store.isOffered(called, caller, objectId, clock.now());
  }

  /** Who is told how far the reading of an object comes: nobody where it is not offered to who reads it. */
  reading({ called, caller }: AccessRequest, objectId: string): ((bytes: number) => void) | null {
    const { store, clock } = this.#deps;
    if (!store.isOffered(called, caller, objectId, clock.now())) return null;
    return (bytes) => {
      const ofAgent = this.#read.get(called) ?? new Map<string, number>();
      this.#read.set(called, ofAgent.set(keyOf(caller, objectId), bytes));
    };
  }

  /** Up to which byte another agent has read an object of one here, since the start or the last `forget`. */
  readBytes(aid: Aid, peer: Aid, objectId: string): number {
    return this.#read.get(aid)?.get(keyOf(peer, objectId)) ?? 0;
  }

  /** Forgets how far the objects of an agent were read. */
  forget(aid: Aid): void {
    this.#read.delete(aid);
  }
}

function keyOf(peer: Aid, objectId: string): string {
  return `${peer} ${objectId}`;
}
