/** Checks that the clock of this machine can date what is signed for other nodes. */
import { CLOCK_SKEW_S } from './domain/time.ts';
import { SvcError } from './errors.ts';
import { timeText } from './quantities.ts';

/**
 * Call before signing anything that other nodes reject if its time is in the future.
 * @param aheadMs how far this clock is ahead of the clocks of other nodes; 0 if unknown
 * @throws SvcError `clock_wrong`
 */
export function assertClockNotAhead(aheadMs: number): void {
  if (aheadMs <= CLOCK_SKEW_S * 1000) return;
  throw new SvcError('clock_wrong', {
    message: `The clock of this machine is ${timeText(aheadMs)} ahead of the clocks of other nodes, which reject records from the future. Set the clock, then retry.`,
    details: { offset_s: -aheadMs / 1000 },
  });
}
