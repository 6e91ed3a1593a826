/** What offers of files need from others, and what others see of them. */

import type { NoteOutcome } from '../../foundation/domain/notes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOfferRow } from '../../foundation/store/file-offers.ts';

/** An offer as it is shown. */
export interface FileOffer extends FileOfferRow {
  /** Bytes that the other agent has read, as far as this daemon has seen since its start; null for an offer to one here. */
  readonly sentBytes: number | null;
}

/** What an agent offers. */
export interface OfferRequest {
  readonly recipient: Aid;
  /** An object of the agent. */
  readonly objectId: string;
  /** What the file is called there; the name of the object where it is left out. */
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  /** The object is there for offers alone: it goes with the last one that is open. */
  readonly temporary: boolean;
}

/** A note, as far as offers look at it. */
export interface OfferNote {
  readonly sender: Aid;
  readonly body: Uint8Array;
  /** Unix milliseconds. */
  readonly sentAt: number;
}

/** The notes that carry offers. */
export interface OfferNotes {
  claim(msgType: number, taker: (recipient: Aid, note: OfferNote) => NoteOutcome): void;
  /** There is room again for what was `full`. */
  roomAgain(aid: Aid): void;
  send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<{ readonly delivered: boolean }>;
}

/** The objects that are offered. */
export interface OfferObjects {
  /** Null where the agent has no such object. */
  stat(aid: Aid, objectId: string): { readonly size: number; readonly name: string } | null;
  /** @throws SvcError `not_found` */
  delete(aid: Aid, objectId: string): void;
}

/** What a holder answers, as far as an offer says what it has to be. */
export interface OfferedBytes {
  readonly status: number;
  /** Length of the whole, bytes. */
  readonly size: number;
  readonly body: { destroy(): unknown };
}

/** Where offered bytes come from. */
export interface OfferSources<B extends OfferedBytes> {
  /** Brings an object to a file below files_root. @throws SvcError `wrong_state` where something else has its name */
  get(request: {
    readonly aid: Aid;
    readonly objectId: string;
    readonly size: number;
    readonly hint: Aid;
    readonly dest: string;
    readonly register: false;
    readonly force: false;
    readonly signal: AbortSignal;
  }): Promise<{ readonly path: string }>;
  /** Bytes that are here of an object that is being brought; null where it is not. */
  progress(objectId: string): number | null;
  /** Asks a holder. */
  read(request: {
    readonly local: Aid;
    readonly holder: Aid;
    readonly objectId: string;
    readonly method: 'GET';
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  }): Promise<B>;
}
