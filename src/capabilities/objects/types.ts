/** Types of the objects capability. */
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

/** The URL of an object. */
export function objectUrl(holder: Aid, objectId: string): string {
  return `svc://${holder}/cas/${objectId}`;
}
