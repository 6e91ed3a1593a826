/** Small helpers over byte arrays that several formats share. */
import { base64, hex } from '@scure/base';

/** From this length on, bytes, arrays are compared by four: shorter ones would pay more for the views than they gain. */
const WORDWISE_FROM = 128;

/** True where both arrays hold the same bytes. Not for secrets: its time depends on the content. */
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

/** The order of two arrays: that of the first byte in which they differ; a beginning comes before the whole. */
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

/** Bytes of a hex text of either case, with or without `0x`; null where it is not hex of whole bytes. */
export function fromHex(text: string): Uint8Array | null {
  const digits = text.startsWith('0x') || text.startsWith('0X') ? text.slice(2) : text;
  return decoded(hex, digits);
}

/** Bytes of a padded or unpadded standard base64 text; null where it is not canonical base64. */
export function fromBase64(text: string): Uint8Array | null {
  const digits = text.replace(/={1,2}$/, '');
  return digits.endsWith('=') ? null : decoded(base64, digits.padEnd(Math.ceil(digits.length / 4) * 4, '='));
}

/** Null where a decoder refuses the text. */
function decoded(coder: { decode(text: string): Uint8Array }, text: string): Uint8Array | null {
  try {
    return coder.decode(text);
  } catch {
    return null;
  }
}

/** Frees the memory of a chunk at once where it has all of it to itself; nobody may use the chunk afterwards. */
export function freeMemory(chunk: Uint8Array): void {
  const memory = chunk.buffer;
  const isWhole = chunk.byteLength > 0 && chunk.byteLength === memory.byteLength;
  if (isWhole && memory instanceof ArrayBuffer) memory.transfer(0);
}
