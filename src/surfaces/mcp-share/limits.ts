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
