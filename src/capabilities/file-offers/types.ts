/** Types of file offers: their dependencies and their results. */

import type { NoteOutcome } from '../../foundation/domain/notes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { FileOfferRow } from '../../foundation/store/file-offers.ts';

/** An offer as it is returned to clients. */
export interface FileOffer extends FileOfferRow {
  /** Bytes that the other agent has read since the start of this daemon. Null for offers to a local agent. */
  readonly sentBytes: number | null;
}

/** A new offer. */
export interface OfferRequest {
  readonly recipient: Aid;
  /** An object of the agent. */
  readonly objectId: string;
  /** The name of the file in the offer. By default, the name of the object. */
  readonly name?: string | undefined;
  readonly message?: string | undefined;
  /** The object exists only for offers. It is deleted when its last open offer ends. */
  readonly temporary: boolean;
}

/** The parts of a note that offers use. */
export interface OfferNote {
  readonly sender: Aid;
  readonly body: Uint8Array;
  /** Unix milliseconds. */
  readonly sentAt: number;
}

/** The operations on notes that offers use. */
export interface OfferNotes {
  claim(msgType: number, taker: (recipient: Aid, note: OfferNote) => NoteOutcome): void;
  /** Reports that notes which were rejected as `full` may be accepted now. */
  roomAgain(aid: Aid): void;
  send(
    sender: Aid,
    recipient: Aid,
    msgType: number,
    body: Uint8Array,
    signal?: AbortSignal,
  ): Promise<{ readonly delivered: boolean }>;
}

/** The operations on objects that offers use. */
export interface OfferObjects {
  /** Null if the agent has no object with this ID. */
  stat(aid: Aid, objectId: string): { readonly size: number; readonly name: string } | null;
  /** @throws SvcError `not_found` */
  delete(aid: Aid, objectId: string): void;
}

/** The parts of a holder's response that offers check. */
export interface OfferedBytes {
  readonly status: number;
  /** Size of the whole object, bytes. */
  readonly size: number;
  readonly body: { destroy(): unknown };
}

/** Reads offered objects from their holders. */
export interface OfferSources<B extends OfferedBytes> {
  /** Downloads an object to a file below files_root. @throws SvcError `wrong_state` if another file has its name */
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
  /** Downloaded bytes of an object, or null if it is not being downloaded. */
  progress(objectId: string): number | null;
  /** Requests an object from a holder. */
  read(request: {
    readonly local: Aid;
    readonly holder: Aid;
    readonly objectId: string;
    readonly method: 'GET';
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  }): Promise<B>;
}
