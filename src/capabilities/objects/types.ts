/** Types of the objects capability. */
import type { FileHandle } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Aid } from '../../foundation/identity/aid.ts';

/** An object of a local agent. */
export interface ObjectInfo {
  /** SHA-256 of its bytes, lower-case hex. */
  readonly objectId: string;
  readonly size: number;
  readonly name: string;
  /** `svc://<holder>/cas/<object_id>`. */
  readonly url: string;
}

export type ObjectSource = { readonly path: string } | { readonly bytes: Uint8Array };

/** Opens calls on links of purpose `object`. */
export interface ObjectCaller {
  /** @throws SvcError `resolve_failed`, `connect_failed`, `access_denied`, `rate_limited`, `timeout`, `protocol_error`, `cancelled` */
  request(
    local: Aid,
    remote: Aid,
    call: {
      readonly method: string;
      readonly path: string;
      readonly headers: readonly string[];
      readonly body: null;
      readonly accessToken?: string | undefined;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<{
    readonly status: number;
    readonly headers: readonly string[];
    readonly body: Readable;
    /** Frees the memory of a chunk of the body. It must not be used afterwards. */
    readonly release?: (chunk: Buffer) => void;
  }>;
}

/** Bytes that can be read: a file, or its part that exists already. */
export type OpenedBytes = Pick<FileHandle, typeof Symbol.asyncDispose> & {
  readonly read: (
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ) => Promise<{ readonly bytesRead: number }>;
};

/** Open bytes with a name. The caller closes the handle. */
export interface OpenedObject {
  /** Names the bytes: an object ID, or the ID of an offer. */
  readonly tag: string;
  readonly name: string;
  readonly size: number;
  readonly handle: OpenedBytes;
  /** Whether the file has not changed since it was opened. */
  readonly isIntact: () => Promise<boolean>;
}

/** Parts of an offered file: its bytes, and its prefix hashes. */
export type OfferedPart = 'file' | 'hashes';

/** The URL of an object. */
export function objectUrl(holder: Aid, objectId: string): string {
  return `svc://${holder}/cas/${objectId}`;
}
