/** Calls: HTTP requests to remote agents, answered in one piece. */

/**
 * How long a call may wait for the head of its response, and then for each further byte, unless its caller says
 * otherwise: milliseconds. See docs/time-limits.md.
 */
export const DEFAULT_CALL_TIMEOUT_MS = 60_000;
/** Longest such wait that a caller may ask for, milliseconds; 0 asks for none. */
export const MAX_CALL_TIMEOUT_MS = 600_000;
/** Longest path and query, characters. */
export const MAX_CALL_PATH_CHARS = 8192;
/** What is kept of the body of an answer, bytes; the rest is not read. */
export const MAX_FETCHED_BYTES: number = 4 * 1024 * 1024;
