import { Quota, type QuotaShare } from '../../foundation/quota.ts';

// Counts the bytes of callers' messages that the share holds, from receiving a message until the server has read it.
// A caller with slow messages or a slow server only uses up its own quota.

export class Backlog {
  readonly #quota = new Quota({ perNode: MAX_CALLER_BACKLOG_BYTES, total: MAX_BACKLOG_BYTES });

  /**
   * Registers a message at its start.
   * @param onEvict aborts it if it is evicted in favor of a caller with fewer bytes
   */
  begin(caller: string, onEvict: () => void): QuotaShare {
    const share = this.#quota.take({ node: caller, source: caller, named: false }, { amount: 0, onEvict });
    if (share === null) throw new RangeError('an empty message did not get a quota');
    return share;
  }
}

// Resource limits of a shared MCP server.

/** Concurrent processes of a wrapped server: one per session in the older revisions, one per caller in the newer. */
export const MAX_SHARED_PROCESSES = 32;
/** Processes that one caller may have. */
export const MAX_PROCESSES_PER_CALLER = 8;
/** Pending requests of one caller. */
export const MAX_SHARED_REQUESTS = 64;
/** A process without requests and open streams stops after this time, in milliseconds. */
export const SHARED_IDLE_MS = 1_800_000;
/** Bytes of messages of one caller that are being received or that the server has not read yet. */
export const MAX_CALLER_BACKLOG_BYTES: number = 12 * 1024 * 1024;
/** The same for all callers together. */
export const MAX_BACKLOG_BYTES: number = 32 * 1024 * 1024;
/** Values in one message of a caller. Parsing 100,000 takes about a fifth of a second. */
export const MAX_MESSAGE_VALUES = 100_000;
/** Longest request ID or progress token, in characters. It is stored while the request is pending. */
export const MAX_ID_CHARS = 256;
