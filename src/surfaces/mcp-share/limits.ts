/** Resource limits of a shared MCP server. */

/** Concurrent processes of a wrapped server: one per session in the older revisions, one per caller in the newer. */
export const MAX_SHARED_PROCESSES = 32;
/** Processes that one caller may have. */
export const MAX_PROCESSES_PER_CALLER = 8;
/** Pending requests of one caller. */
export const MAX_SHARED_REQUESTS = 64;
/** Largest message of a caller or the server, in bytes. */
export const MAX_SHARED_MESSAGE_BYTES: number = 10 * 1024 * 1024;
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
