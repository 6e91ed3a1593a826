/** Formats quantities with units for people: `64 KiB`, `30 s`, `7 days`. */

type Units = readonly (readonly [number, string])[];

const BYTES: Units = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
  [1, 'bytes'],
];
const TIMES: Units = [
  [86_400_000, 'days'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
  [1, 'ms'],
];

function inLargest(value: number, units: Units): string {
  // "24 h" reads better than "1 days".
  const fits = ([size, unit]: readonly [number, string]) =>
    value % size === 0 && value >= (unit === 'days' ? 2 : 1) * size;
  const [size, unit] = units.find(fits) ?? [1, units.at(-1)?.[1] ?? ''];
  return `${countText(value / size)} ${unit}`;
}

/** Formats an integer with separators: `10,000`. `toLocaleString` would add 10 ms to a start to load its tables. */
export function countText(count: number): string {
  const [whole = '', ...fraction] = String(count).split('.');
  return [whole.replace(/\B(?=(?:\d{3})+$)/g, ','), ...fraction].join('.');
}

/** Formats bytes in the largest unit that keeps the number whole: `64 KiB`, `1,000 bytes`. */
export function sizeText(bytes: number): string {
  return inLargest(bytes, BYTES);
}

/** Formats milliseconds in the largest unit that keeps the number whole: `90 s`, `24 h`, `7 days`. */
export function timeText(ms: number): string {
  return inLargest(ms, TIMES);
}
