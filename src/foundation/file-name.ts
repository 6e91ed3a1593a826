/** Names of files as they are shown to others, and taken from others. */
import { MAX_FILE_NAME_BYTES } from './domain/objects.ts';
import { UNSAFE } from './log-text.ts';

/** What Windows takes for something else than part of a name. */
const RESERVED_CHARACTERS = /[<>:"|?*]/g;
/** Names that are devices of Windows, whatever stands behind their first dot. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
/** Bytes that are left for a number in the name, ` (999)`. */
const NUMBER_BYTES = 8;

function cut(name: string, maxBytes: number): string {
  let short = name;
  while (Buffer.byteLength(short) > maxBytes) short = short.slice(0, -1);
  // Half of a pair of code units may be left over.
  return short.replace(/[\uD800-\uDBFF]$/, '');
}

/** A plain file name: no folders, nothing invisible, not too long; `fallback` where nothing is left. */
export function safeName(name: string | undefined, fallback: string): string {
  const plain = (name ?? '').split(/[/\\]/).at(-1)?.replace(UNSAFE, '').trim() ?? '';
  if (plain === '' || plain === '.' || plain === '..') return fallback;
  return cut(plain, MAX_FILE_NAME_BYTES);
}

/**
 * A name that a file of a stranger may get in a folder of the user's, on every system: plain, not hidden, no device,
 * with room for a number behind it.
 */
export function receivedName(name: string): string {
  const plain = safeName(name.toWellFormed(), '').replace(RESERVED_CHARACTERS, '_');
  const shown = cut(plain.replace(/^[.\s]+/, ''), MAX_FILE_NAME_BYTES - NUMBER_BYTES).replace(/[.\s]+$/, '');
  if (shown === '') return 'file';
  return DEVICE.test(shown) ? `_${shown}` : shown;
}

/** The name that is tried where those before it are taken: `plan.pdf`, `plan (1).pdf`, … */
export function numberedName(name: string, number: number): string {
  if (number === 0) return name;
  const dot = name.lastIndexOf('.');
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  return `${stem} (${number})${end}`;
}
