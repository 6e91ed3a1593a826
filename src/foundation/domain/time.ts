/** The range of times that formats take. */

/** The last second of the year 9999: later ones have no ISO 8601 text of four digits. Unix seconds. */
export const MAX_UNIX_S = 253_402_300_799;
/** The last millisecond of it. Unix milliseconds. */
export const MAX_UNIX_MS: number = MAX_UNIX_S * 1000 + 999;
/** How far the clocks of two machines may disagree about what is valid now, seconds. */
export const CLOCK_SKEW_S = 60;
