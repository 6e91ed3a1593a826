import { timeText } from './display-text.ts';
import { CLOCK_SKEW_S } from './domain/time.ts';
import { SvcError } from './errors.ts';

/** Injected time, so that tests can run a day in a millisecond. */
export interface Clock {
  /**
   * Milliseconds since the Unix epoch, for times that are stored, shown or sent. Users and NTP set this clock ahead and
   * back, so use `monotonic` for waits and ages inside this process.
   */
  now(): number;
  /**
   * Milliseconds since an arbitrary time. Never goes back, and counts the time in which the machine sleeps. A clock that
   * is set ahead looks like a sleep.
   */
  monotonic(): number;
  /** Runs `task` once after `ms`; the timer does not keep the process alive. */
  after(ms: number, task: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/**
 * Longest wait of one Node timer, in milliseconds; Node fires longer timers immediately. Longer waits use several
 * timers.
 */
const MAX_TIMER_MS: number = 2 ** 31 - 1;

/** Timers must not keep the process alive. Browser timers are numbers and do not need this. */
function unrefTimer(timer: number | { unref(): unknown }): void {
  if (typeof timer === 'object') timer.unref();
}

/** If a wall clock gains or loses more milliseconds than this, the machine slept or the wall clock was set. */
const JUMP_MS = 1000;

/**
 * Combines a clock that never goes back but may stop while the machine sleeps with a wall clock that counts the sleep.
 * @param precise never goes back, milliseconds
 * @param wall Unix milliseconds
 */
export function monotonicTime(precise: () => number, wall: () => number): () => number {
  const begin = wall() - precise();
  let offset = begin;
  let sleptMs = 0;
  return () => {
    const at = precise();
    const now = wall() - at;
    if (Math.abs(now - offset) > JUMP_MS) {
      sleptMs += Math.max(0, now - offset);
      offset = now;
    }
    return begin + at + sleptMs;
  };
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: monotonicTime(performance.now.bind(performance), () => Date.now()),
  after(ms, task) {
    const rest = ms - MAX_TIMER_MS;
    let next: Timer | null = null;
    const begin = (): void => {
      next = systemClock.after(rest, task);
    };
    const handle = rest > 0 ? setTimeout(begin, MAX_TIMER_MS) : setTimeout(task, ms);
    unrefTimer(handle);
    return {
      cancel() {
        clearTimeout(handle);
        next?.cancel();
      },
    };
  },
};

/** The time in whole Unix seconds, the unit of records and delegations. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.now() / 1000);
}

/** Milliseconds per UTC day, without leap seconds. */
export const DAY_MS = 86_400_000;
/** Start of the year 10000, from which timestamps are longer. */
const FIVE_DIGITS_MS = 253_402_300_800_000;

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0');
}

/**
 * Formats a day since 1970 as `2026-11-22`. Years start in March here, so that a leap day is the last day of its year.
 * https://howardhinnant.github.io/date_algorithms.html#civil_from_days
 */
function dateText(day: number): string {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const year = Math.floor(
    (ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  );
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * ofYear + 2) / 153);
  const ofMonth = ofYear - Math.floor((153 * month + 2) / 5) + 1;
  const isNext = month >= 10;
  return `${digits(year + era * 400 + (isNext ? 1 : 0), 4)}-${digits(isNext ? month - 9 : month + 3, 2)}-${digits(ofMonth, 2)}`;
}

/**
 * Formats Unix milliseconds as ISO 8601 UTC, the timestamp format of the API. Same result as `toISOString`, which takes
 * five times as long: a list of a thousand agents has five thousand timestamps.
 * @throws RangeError if `ms` is not a valid time
 */
export function isoTime(ms: number): string {
  if (!(ms >= 0 && ms < FIVE_DIGITS_MS)) return new Date(ms).toISOString();
  const day = Math.floor(ms / DAY_MS);
  const ofDay = Math.floor(ms) - day * DAY_MS;
  const hours = Math.floor(ofDay / 3_600_000);
  const minutes = Math.floor(ofDay / 60_000) % 60;
  const seconds = Math.floor(ofDay / 1000) % 60;
  return `${dateText(day)}T${digits(hours, 2)}:${digits(minutes, 2)}:${digits(seconds, 2)}.${digits(ofDay % 1000, 3)}Z`;
}

/**
 * Checks that the clock of this machine can date what is signed for other nodes.
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
