/** Numbers, sizes and times in the format of a language. */

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;
const STEP = 1000;
const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

/** A number: `1,904`. */
export function count(value: number, language: string): string {
  return new Intl.NumberFormat(language).format(value);
}

/** A size: `3.1 MB`. */
export function bytes(count: number, language: string): string {
  return sized(count, language, '');
}

/** A rate: `16.8 MB/s`. */
export function bytesPerSecond(count: number, language: string): string {
  return sized(count, language, '-per-second');
}

function sized(count: number, language: string, per: string): string {
  let value = count;
  let unit = 0;
  for (; value >= STEP && unit < UNITS.length - 1; unit++) value /= STEP;
  return new Intl.NumberFormat(language, {
    style: 'unit',
    unit: `${UNITS[unit] ?? 'byte'}${per}`,
    unitDisplay: 'short',
    maximumSignificantDigits: value < STEP / 10 ? 2 : 3,
  }).format(value);
}

/** Milliseconds: `38 ms`. */
export function ms(value: number, language: string): string {
  const style = { style: 'unit', unit: 'millisecond', unitDisplay: 'short', maximumSignificantDigits: 3 } as const;
  return new Intl.NumberFormat(language, style).format(value);
}

function unitOf(seconds: number): ['second' | 'minute' | 'hour' | 'day', number] {
  if (seconds < MINUTE_S) return ['second', seconds];
  if (seconds < HOUR_S) return ['minute', seconds / MINUTE_S];
  if (seconds < 2 * DAY_S) return ['hour', seconds / HOUR_S];
  return ['day', seconds / DAY_S];
}

/** A time span in its largest unit: `4 min`. */
export function span(seconds: number, language: string): string {
  const [unit, value] = unitOf(Math.max(0, seconds));
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short' }).format(Math.floor(value));
}

/** A relative time: `4 min. ago`, or in the future. */
export function relative(at: number, now: number, language: string): string {
  const seconds = (at - now) / 1000;
  const [unit, value] = unitOf(Math.abs(seconds));
  const style = { numeric: 'auto', style: 'short' } as const;
  return new Intl.RelativeTimeFormat(language, style).format(Math.sign(seconds) * Math.floor(value), unit);
}

/** A time: `14:02:11` today, with the date on other days. */
export function time(at: number, now: number, language: string): string {
  const today = new Date(at).toDateString() === new Date(now).toDateString();
  return new Intl.DateTimeFormat(
    language,
    today ? { timeStyle: 'medium' } : { dateStyle: 'medium', timeStyle: 'short' },
  ).format(at);
}

/** A time without a date: `14:02`. */
export function clock(at: number, language: string): string {
  return new Intl.DateTimeFormat(language, { timeStyle: 'short' }).format(at);
}

/** A day: `today`, or `Saturday, 21 November`. Other years include the year. */
export function day(at: number, now: number, language: string): string {
  const [then, today] = [new Date(at), new Date(now)];
  if (then.toDateString() === today.toDateString())
    return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(0, 'day');
  const year = then.getFullYear() === today.getFullYear() ? {} : ({ year: 'numeric' } as const);
  return new Intl.DateTimeFormat(language, { weekday: 'long', day: 'numeric', month: 'long', ...year }).format(at);
}
