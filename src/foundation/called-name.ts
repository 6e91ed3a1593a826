/** Names that nodes and agents give themselves. Others see them until they set a label. */
import { UNSAFE } from './display-text.ts';
import { looksLikeAddress } from './labels.ts';

/** Longest name, UTF-16 units. */
export const MAX_CALLED_CHARS = 64;

/** Scripts with letters that look like Latin ones. */
const LOOKS_LATIN = /\p{Script=Cyrillic}|\p{Script=Greek}|\p{Script=Cherokee}|\p{Script=Coptic}|\p{Script=Armenian}/u;

/**
 * A name as it is shown and sent: one line without invisible characters. Undefined for text that is empty, too long,
 * looks like an address, or mixes letters that look alike.
 */
export function calledName(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > 4 * MAX_CALLED_CHARS || !text.isWellFormed()) return undefined;
  const name = text.normalize('NFC').replaceAll(/\s+/g, ' ').replaceAll(UNSAFE, '').trim();
  if (name === '' || name.length > MAX_CALLED_CHARS || looksLikeAddress(name)) return undefined;
  return /\p{Script=Latin}/u.test(name) && LOOKS_LATIN.test(name) ? undefined : name;
}

/** True for a name in the form in which it is sent. */
export function isCalledName(text: unknown): text is string {
  return text !== undefined && calledName(text) === text;
}

/** A name of another node or agent, for people. */
export function callsItself(name: string): string {
  return `calls itself ${name}`;
}
