/** The range of times in all formats, and times that several parts share. */

/** The last second of the year 9999, in Unix seconds. Later times have no ISO 8601 text with four digits. */
export const MAX_UNIX_S = 253_402_300_799;
/** The last millisecond of the year 9999, in Unix milliseconds. */
export const MAX_UNIX_MS: number = MAX_UNIX_S * 1000 + 999;
/** Tolerated difference between the clocks of two machines, seconds. */
export const CLOCK_SKEW_S = 60;
/** How long a request without a response can be repeated and counts as the same, milliseconds. */
export const REPEAT_MS: number = 3600_000;
