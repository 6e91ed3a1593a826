/** Helpers for byte arrays. */
import { base64, hex } from '@scure/base';

/**
 * Arrays of at least this many bytes are compared four bytes at a time. For shorter arrays the views cost more than
 * they save.
 */
const WORDWISE_FROM = 128;

/** True if both arrays contain the same bytes. Not for secrets: the time depends on the content. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  const { length } = a;
  if (length !== b.length) return false;
  let i = 0;
  if (length >= WORDWISE_FROM) {
    const wordsOfA = new DataView(a.buffer, a.byteOffset, length);
    const wordsOfB = new DataView(b.buffer, b.byteOffset, length);
    for (; i + 4 <= length; i += 4) if (wordsOfA.getUint32(i) !== wordsOfB.getUint32(i)) return false;
  }
  for (; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Compares two arrays lexicographically. A prefix sorts before the longer array. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return hex.encode(bytes);
}

/** Parses hex of either case, with or without `0x`; null if it is not hex of whole bytes. */
export function fromHex(text: string): Uint8Array | null {
  const digits = text.startsWith('0x') || text.startsWith('0X') ? text.slice(2) : text;
  return decoded(hex, digits);
}

/** Parses standard base64 with or without padding; null if it is not canonical. */
export function fromBase64(text: string): Uint8Array | null {
  const digits = text.replace(/={1,2}$/, '');
  return digits.endsWith('=') ? null : decoded(base64, digits.padEnd(Math.ceil(digits.length / 4) * 4, '='));
}

/** Null if the decoder rejects the text. */
function decoded(coder: { decode(text: string): Uint8Array }, text: string): Uint8Array | null {
  try {
    return coder.decode(text);
  } catch {
    return null;
  }
}

/** Frees the memory of a chunk immediately if nothing else uses its buffer. Do not use the chunk afterwards. */
export function freeMemory(chunk: Uint8Array): void {
  const memory = chunk.buffer;
  const isWhole = chunk.byteLength > 0 && chunk.byteLength === memory.byteLength;
  if (isWhole && memory instanceof ArrayBuffer) memory.transfer(0);
}

/** Control characters other than line breaks and tabs. */
const BINARY = /[^\P{Cc}\t\n\r]/u;

/** The text of bytes. Undefined for nothing, for bytes that are not UTF-8, and for control characters. */
export function plainText(bytes: Uint8Array): string | undefined {
  if (bytes.length === 0) return undefined;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return BINARY.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}
