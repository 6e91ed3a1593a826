/** Calls: HTTP requests to remote agents with one complete response. */

/** Default wait for the response headers, and then for each further byte, milliseconds. See docs/time-limits.md. */
export const DEFAULT_CALL_TIMEOUT_MS = 60_000;
/** Longest wait that a caller may request, milliseconds. 0 means no limit. */
export const MAX_CALL_TIMEOUT_MS = 600_000;
/** Longest path and query, characters. */
export const MAX_CALL_PATH_CHARS = 8192;
/** Part of a response body that is returned, bytes. The rest is not read. */
export const MAX_FETCHED_BYTES: number = 4 * 1024 * 1024;
