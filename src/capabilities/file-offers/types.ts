/** Types of file offers: their dependencies and their results. */

import type { NoteOutcome } from '../../foundation/domain/notes.ts';
import type { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NoteSending } from '../../foundation/node-parts.ts';
import type { PrefixHashes } from '../../foundation/prefix-hashes.ts';
import type { FileOfferRow } from '../../foundation/store/file-offers.ts';

/** An offer as it is returned to clients. */
export interface FileOffer extends FileOfferRow {
  /** Bytes that the other agent has read since the start of this daemon. Null for offers to a local agent. */
  readonly sentBytes: number | null;
  /** Bytes of the file that are hashed. Null if it is not being hashed. */
  readonly hashedBytes: number | null;
}

/** The file of a new offer. Only an object is hashed already. */
export type OfferSource =
  | { readonly objectId: string }
  /** A file below files_root. */
  | { readonly path: string }
  /** The client sends this many bytes. */
  | { readonly size: number };

/** A new offer. */
export interface OfferRequest {
  readonly recipient: Aid;
  readonly source: OfferSource;
  /** The name of the file in the offer. By default, the name of the object or the file. */
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
export interface OfferNotes extends NoteSending {
  claim(msgType: number, taker: (recipient: Aid, note: OfferNote) => NoteOutcome): void;
  /** Reports that notes which were rejected as `full` may be accepted now. */
  roomAgain(aid: Aid): void;
}

/** The operations on objects that offers use. */
export interface OfferObjects {
  /** Null if the agent has no object with this ID. */
  stat(aid: Aid, objectId: string): { readonly size: number; readonly name: string } | null;
  /** @throws SvcError `not_found` */
  delete(aid: Aid, objectId: string): void;
}

/** A file that became an object. */
export interface MadeObject {
  readonly objectId: string;
  /** The agent did not have it before. */
  readonly isNew: boolean;
}

/** Hashes offered files. Their recipients read them meanwhile. */
export interface OfferFiles {
  /** Looks at a file below files_root. @throws SvcError `files_root_required`, `not_found`, `invalid_request` */
  find(
    aid: Aid,
    path: string,
  ): Promise<{ readonly size: number; readonly name: string; readonly objectId: string | null }>;
  /** Announces the file of an offer. */
  begin(aid: Aid, id: string, size: number): void;
  /** Hashes a file below files_root. @throws SvcError `wrong_state` if it changes meanwhile */
  register(aid: Aid, id: string, path: string, name: string): Promise<MadeObject>;
  /** Stores and hashes the bytes of a client. @throws SvcError `wrong_state` if they have another size */
  store(aid: Aid, id: string, source: AsyncIterable<Uint8Array>, name: string): Promise<MadeObject>;
  /** Hashed bytes; null if the file is not being hashed. */
  hashed(aid: Aid, id: string): number | null;
  /** The object is stored in the offer. */
  finish(aid: Aid, id: string): void;
  /** Stops hashing. */
  cancel(aid: Aid, id: string, error: SvcError): void;
}

/** The parts of a holder's response that offers check. */
export interface OfferedBytes {
  readonly status: number;
  /** Size of the whole object, bytes. */
  readonly size: number;
  readonly body: { destroy(): unknown };
}

/** An offered file, for its recipient. */
export interface FileToRead {
  readonly local: Aid;
  readonly holder: Aid;
  /** The ID of the offer. */
  readonly id: string;
  readonly size: number;
  readonly signal: AbortSignal;
}

/** Reads offered files from their senders. */
export interface OfferSources<B extends OfferedBytes> {
  /**
   * Downloads an offered file below files_root.
   * @throws SvcError `wrong_state` if another file has its name
   */
  get(
    request: FileToRead & { readonly objectId: string | null; readonly dest: string },
  ): Promise<{ readonly path: string; readonly objectId: string }>;
  /** Downloaded bytes of an offer, or null if it is not being downloaded. */
  progress(aid: Aid, id: string): number | null;
  /** Requests the bytes of an offer. */
  read(request: FileToRead & { readonly headers: Readonly<Record<string, string>> }): Promise<B>;
  /** Requests the hashes of an offer. */
  hashes(request: FileToRead): PrefixHashes;
}
