/** What a shared MCP server may cost the machine that it runs on. */

/** Processes of a wrapped server at once; each session of the older revisions has one, and each caller of the newer. */
export const MAX_SHARED_PROCESSES = 32;
/** Processes that one caller may have. */
export const MAX_PROCESSES_PER_CALLER = 8;
/** Requests of one caller that wait for an answer. */
export const MAX_SHARED_REQUESTS = 64;
/** Largest message of a caller, and of the server, bytes. */
export const MAX_SHARED_MESSAGE_BYTES: number = 10 * 1024 * 1024;
/** A process without a request and without an open stream ends after so long, milliseconds. */
export const SHARED_IDLE_MS = 1_800_000;
/** Bytes of messages of one caller that are being received, or that the server has not taken yet. */
export const MAX_CALLER_BACKLOG_BYTES: number = 12 * 1024 * 1024;
/** The same of all callers. */
export const MAX_BACKLOG_BYTES: number = 32 * 1024 * 1024;
/** Values in one message of a caller: reading 100,000 takes about a fifth of a second. */
export const MAX_MESSAGE_VALUES = 100_000;
/** Longest text that names a request or its progress, characters: it is kept for as long as the request may be answered. */
export const MAX_ID_CHARS = 256;
