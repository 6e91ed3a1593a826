/** How long to wait after failures in a row: a time that grows with each of them, up to a bound. */

export interface Backoff {
  /** Milliseconds after the first failure. */
  readonly firstMs: number;
  /** Most milliseconds. */
  readonly maxMs: number;
  /** How many times longer each further failure makes the wait; 2 where it is left out. */
  readonly factor?: number;
}

export interface JitteredBackoff extends Backoff {
  /** By up to which part chance shortens the wait, 0 to 1, so that those who failed together do not come back together. */
  readonly jitter: number;
}

/**
 * Milliseconds to wait after so many failures in a row; 0 where there was none.
 * @param random a number from 0, for the whole wait, to below 1
 */
export function backoff(options: Backoff & { readonly jitter?: never }, failures: number): number;
export function backoff(options: JitteredBackoff, failures: number, random: number): number;
export function backoff(
  { firstMs, maxMs, factor = 2, jitter = 0 }: Backoff & { readonly jitter?: number },
  failures: number,
  random = 0,
): number {
  if (failures < 1) return 0;
  return Math.ceil(Math.min(maxMs, firstMs * factor ** (failures - 1)) * (1 - jitter * random));
}
