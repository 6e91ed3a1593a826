/** Sanitizes file names that are sent to or received from other agents. */

import path from 'node:path';
import { UNSAFE } from './display-text.ts';
import { MAX_FILE_NAME_BYTES } from './domain/objects.ts';

/** Characters that Windows does not allow in names. */
const RESERVED_CHARACTERS = /[<>:"|?*]/g;
/** Windows device names, with any extension. Windows also takes superscript digits, and ignores blanks before a dot. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[\d\u{b9}\u{b2}\u{b3}]) *(?:\.|$)/iu;
/** Bytes reserved for a number in the name, ` (999)`. */
const NUMBER_BYTES = 8;

function cut(name: string, maxBytes: number): string {
  let short = name;
  while (Buffer.byteLength(short) > maxBytes) short = short.slice(0, -1);
  // Removes half of a surrogate pair that the cut left.
  return short.replace(/[\uD800-\uDBFF]$/, '');
}

/** A plain file name without folders and invisible characters, limited in length; `fallback` if it would be empty. */
export function safeName(name: string | undefined, fallback: string): string {
  const plain = (name ?? '').split(/[/\\]/).at(-1)?.replace(UNSAFE, '').trim() ?? '';
  if (plain === '' || plain === '.' || plain === '..') return fallback;
  return cut(plain, MAX_FILE_NAME_BYTES);
}

/** A name for a received file that is safe on every system: plain, not hidden, not a device, with room for a number. */
export function receivedName(name: string): string {
  const plain = safeName(name.toWellFormed(), '').replace(RESERVED_CHARACTERS, '_');
  const shown = cut(plain.replace(/^[.\s]+/, ''), MAX_FILE_NAME_BYTES - NUMBER_BYTES).replace(/[.\s]+$/, '');
  if (shown === '') return 'file';
  return DEVICE.test(shown) ? `_${shown}` : shown;
}

/**
 * Why Windows would store a new file under another name than this one, or not at all: "con" is a device, "a:b" is a
 * hidden stream of "a", and "a." is "a". Null if it would not.
 */
export function windowsNameProblem(file: string): string | null {
  const name = path.win32.basename(file);
  const stem = path.win32.normalize(file).slice(path.win32.parse(file).root.length);
  if (DEVICE.test(name)) return 'is the name of a device';
  if (/[.\s]$/.test(name)) return 'ends with a dot or a blank';
  return stem.includes(':') || /[<>"|?*]/.test(stem) ? 'contains a character that Windows reserves' : null;
}

/** The next name to try if the earlier ones exist: `plan.pdf`, `plan (1).pdf`, … */
export function numberedName(name: string, number: number): string {
  if (number === 0) return name;
  const dot = name.lastIndexOf('.');
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  return `${stem} (${number})${end}`;
}
