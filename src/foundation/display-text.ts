/** Formats texts, quantities and log lines for people, in English. */

/** Fields that the logger adds to each line. */
interface LineParts {
  readonly time: string;
  readonly level: string;
  readonly component?: string;
  readonly msg: string;
}

/**
 * Characters that move a terminal's cursor, break a line, change the text direction or are invisible. These are control
 * and format characters (C1 too: one of them starts escape sequences), separators, and invisible characters such as
 * fillers and variation selectors, which can hide one text in another. Variation selectors after an emoji are kept.
 */
export const UNSAFE = /(?!(?<=\p{Emoji})[\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Escapes unsafe characters as `\uXXXX`. Inside JSON strings this does not change the value. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Formats one JSON line as `2026-01-01T00:00:00.000Z INFO dht: joined peers=3 from="a b"`, without a line break. */
export function textLine(json: string): string {
  const { time, level, component, msg, ...fields } = JSON.parse(json) as LineParts & Record<string, unknown>;
  const from = component === undefined ? '' : `${component}: `;
  const pairs = Object.entries(fields).map(([name, value]) => ` ${word(name)}=${word(value)}`);
  return escapeUnsafe(`${time} ${level.toUpperCase().padEnd(5)} ${from}${msg}${pairs.join('')}`);
}

/** Quotes a value unless it is one plain word, so that a value cannot imitate another field. */
function word(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=\\[\]{},]+$/.test(value) ? value : JSON.stringify(value);
}

/** Maximum number of characters of the last entry that a list of conversations shows. */
export const MAX_EXCERPT_CHARS = 200;

/** The first characters of a text, never cut inside a character. */
export function excerpt(text: string): string {
  // A character has at most two string units.
  return Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS))
    .slice(0, MAX_EXCERPT_CHARS)
    .join('');
}

// Formats quantities with units for people: `64 KiB`, `30 s`, `7 days`.

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

/** Formats bytes in the largest unit that keeps the number whole: `64 KiB`, `1,000 bytes`, `1 byte`. */
export function sizeText(bytes: number): string {
  return bytes === 1 ? '1 byte' : inLargest(bytes, BYTES);
}

/** Formats milliseconds in the largest unit that keeps the number whole: `90 s`, `24 h`, `7 days`. */
export function timeText(ms: number): string {
  return inLargest(ms, TIMES);
}

/** `1 node`, `2 nodes`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Formats a time relative to now: `3 min ago`, `in 20 s`. @param now Unix milliseconds */
export function relativeTime(iso: string, now: number): string {
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  const size = Math.abs(seconds);
  const words =
    size < 60
      ? `${size} s`
      : size < 3600
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} days`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}

/** Describes how many peers a node has and how many nodes use the network through it. */
export function networkText(peers: number, clients: number): string {
  const through =
    clients === 0 ? '' : `${pluralize(clients, 'node')} ${clients === 1 ? 'uses' : 'use'} the network through this one`;
  return [...(peers > 0 || clients === 0 ? [pluralize(peers, 'peer')] : []), ...(through === '' ? [] : [through])].join(
    ', ',
  );
}
