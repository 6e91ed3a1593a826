/** Small helpers over byte arrays that several formats share. */

/** True where both arrays hold the same bytes. Not for secrets: its time depends on the content. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Bytes of a hex text of either case, with or without `0x`; null where it is not hex of whole bytes. */
export function fromHex(text: string): Uint8Array | null {
  const digits = text.startsWith('0x') || text.startsWith('0X') ? text.slice(2) : text;
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) return null;
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** Bytes of a padded or unpadded standard base64 text; null where it is not canonical base64. */
export function fromBase64(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '') ? new Uint8Array(bytes) : null;
}

/** Frees the memory of a chunk at once where it has all of it to itself; nobody may use the chunk afterwards. */
export function freeMemory(chunk: Uint8Array): void {
  const memory = chunk.buffer;
  const isWhole = chunk.byteLength > 0 && chunk.byteLength === memory.byteLength;
  if (isWhole && memory instanceof ArrayBuffer) memory.transfer(0);
}
