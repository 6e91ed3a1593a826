/** Base64 for large data, up to several megabytes. */

/**
 * Bytes to encode at a time, a multiple of three. Node stores strings of a megabyte or more outside the JavaScript
 * heap, where the garbage collector frees them late.
 */
const PIECE_BYTES = 384 * 1024;

/**
 * Standard base64 with padding. Node's own encoder is used because JavaScript takes twenty times as long on engines
 * without built-in base64.
 */
export function toBase64(bytes: Uint8Array): string {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (whole.length <= PIECE_BYTES) return whole.toString('base64');
  const pieces: string[] = [];
  for (let at = 0; at < whole.length; at += PIECE_BYTES)
    pieces.push(whole.toString('base64', at, Math.min(at + PIECE_BYTES, whole.length)));
  return pieces.join('');
}

/** Number of base64 characters for a number of bytes. */
export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
/** Bytes to encode at a time, a multiple of three, and the buffer for their characters. */
const STEP_BYTES = 24 * 1024;
const step = new Uint8Array(STEP_BYTES);
const encoded = new Uint16Array((STEP_BYTES / 3) * 2);
const encodedBytes = new Uint8Array(encoded.buffer);
/** The two characters for each 12-bit value, in the byte order of this machine. */
const PAIRS = new Uint16Array(
  Uint8Array.from({ length: 2 * 64 * 64 }, (_, i) => ALPHABET.charCodeAt(i % 2 === 0 ? i >> 7 : (i >> 1) & 63)).buffer,
);

/**
 * Writes standard base64 with padding into `target` at offset `at`, and returns the end offset. It takes twice as long
 * as Node's encoder but creates no garbage. Many megabytes of strings would make the garbage collector reserve tens of
 * megabytes that an idle process keeps.
 */
export function writeBase64(target: Buffer, at: number, bytes: Uint8Array): number {
  const whole = bytes.length - (bytes.length % 3);
  let end = at;
  for (let from = 0; from < whole; from += STEP_BYTES) {
    const length = Math.min(STEP_BYTES, whole - from);
    step.set(bytes.subarray(from, from + length));
    const written = encodeStep(length);
    target.set(encodedBytes.subarray(0, written), end);
    end += written;
  }
  const rest = Buffer.from(bytes.subarray(whole)).toString('base64');
  return end + target.write(rest, end, 'latin1');
}

/** Encodes the first `length` bytes of `step`, a multiple of three; returns the number of characters. */
function encodeStep(length: number): number {
  let to = 0;
  for (let i = 0; i < length; i += 3) {
    const bits = ((step[i] ?? 0) << 16) | ((step[i + 1] ?? 0) << 8) | (step[i + 2] ?? 0);
    encoded[to] = PAIRS[bits >> 12] ?? 0;
    encoded[to + 1] = PAIRS[bits & 4095] ?? 0;
    to += 2;
  }
  return to * 2;
}
