import type { Rate } from '../../foundation/rate-quota.ts';

const SECONDS_PER_MINUTE = 60;

/** A number of times in a minute, all of which may come at once. */
export function perMinute(times: number): Rate {
  return { perSecond: times / SECONDS_PER_MINUTE, burst: times };
}
