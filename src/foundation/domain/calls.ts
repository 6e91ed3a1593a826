/** Calls: HTTP requests to remote agents, answered in one piece. */

/** Time for a call as a whole where nobody says otherwise, milliseconds. */
export const DEFAULT_CALL_TIMEOUT_MS = 60_000;
/** Longest time that a call may be given, milliseconds. */
export const MAX_CALL_TIMEOUT_MS = 600_000;
/** Longest path and query, characters. */
export const MAX_CALL_PATH_CHARS = 8192;
/** What is kept of the body of an answer, bytes; the rest is not read. */
export const MAX_FETCHED_BYTES: number = 4 * 1024 * 1024;
