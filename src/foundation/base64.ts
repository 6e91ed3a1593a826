/** Base64 of what may be megabytes. */

/**
 * So many bytes are encoded at a time, a multiple of three: Node puts a text of a megabyte and more outside of
 * JavaScript's heap, where the garbage collector leaves it for long.
 */
const PIECE_BYTES = 384 * 1024;

/** Standard base64, padded. By Node itself: JavaScript takes twenty times as long where the engine knows no base64. */
export function toBase64(bytes: Uint8Array): string {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (whole.length <= PIECE_BYTES) return whole.toString('base64');
  const pieces: string[] = [];
  for (let at = 0; at < whole.length; at += PIECE_BYTES)
    pieces.push(whole.toString('base64', at, Math.min(at + PIECE_BYTES, whole.length)));
  return pieces.join('');
}

/** So many bytes are written at a time, a multiple of three: short texts are gone with the next small collection. */
const WRITTEN_BYTES = 24 * 1024;

/** How many characters the base64 of so many bytes has. */
export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

/** Writes standard base64, padded, into `target` from `at` on, without a text of the whole; returns where it ends. */
export function writeBase64(target: Buffer, at: number, bytes: Uint8Array): number {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = at;
  for (let from = 0; from < whole.length; from += WRITTEN_BYTES)
    end += target.write(whole.toString('base64', from, Math.min(from + WRITTEN_BYTES, whole.length)), end, 'latin1');
  return end;
}
