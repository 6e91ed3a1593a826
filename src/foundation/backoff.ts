/** Exponential backoff after consecutive failures. */

export interface Backoff {
  /** Wait after the first failure, in milliseconds. */
  readonly firstMs: number;
  /** Longest wait, in milliseconds. */
  readonly maxMs: number;
  /** Each further failure multiplies the wait by this factor. Default: 2. */
  readonly factor?: number;
}

export interface JitteredBackoff extends Backoff {
  /**
   * Largest part of the wait, 0 to 1, that is randomly removed, so that clients that failed together do not retry
   * together.
   */
  readonly jitter: number;
}

/**
 * Milliseconds to wait after a number of consecutive failures; 0 without a failure.
 * @param random from 0 (the whole wait) to below 1
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

/**
 * True until a time, which was at most `maxMs` ahead when it was set. A time that is further ahead is over: the clock was
 * set back since. All in milliseconds.
 */
export function isWaiting(until: number, now: number, maxMs: number): boolean {
  return until > now && until - now <= maxMs;
}
