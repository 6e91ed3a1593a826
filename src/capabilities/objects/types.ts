/** What the parts of this capability, and those who use it, have in common. */
import type { Readable } from 'node:stream';
import type { Aid } from '../../foundation/identity/aid.ts';

/** An object of an agent here. */
export interface ObjectInfo {
  /** SHA-256 of its bytes, lower-case hex. */
  readonly objectId: string;
  readonly size: number;
  readonly name: string;
  /** `svc://<holder>/cas/<object_id>`. */
  readonly url: string;
}

/** What chat and rooms need of objects. */
export interface ObjectsPort {
  /**
   * Makes a file that the daemon can see, or bytes, an object of an agent.
   * @throws SvcError `files_root_required`, `not_found`, `invalid_request`, `quota_exceeded`, `not_writable`
   */
  put(aid: Aid, source: ObjectSource, name?: string): Promise<ObjectInfo>;
  /** An object of an agent here; null where it has none such. */
  stat(aid: Aid, objectId: string): ObjectInfo | null;
  /** Remembers that an agent says it holds an object: the first place to ask later. */
  noteHolder(objectId: string, holder: Aid): void;
}

export type ObjectSource = { readonly path: string } | { readonly bytes: Uint8Array };

/** Opens calls to other agents on links of purpose `object`. */
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
      readonly signal?: AbortSignal;
    },
  ): Promise<{
    readonly status: number;
    readonly headers: readonly string[];
    readonly body: Readable;
    /** Frees a chunk of the body at once. Nobody may look at it again. */
    readonly release?: (chunk: Buffer) => void;
  }>;
}

/** The address of an object. */
export function objectUrl(holder: Aid, objectId: string): string {
  return `svc://${holder}/cas/${objectId}`;
}
