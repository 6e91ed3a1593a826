/** Base64 and UTF-8 without Node. */

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** The text in base64-encoded UTF-8. Null if the bytes are not UTF-8. */
export function textOf(base64: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(base64));
  } catch {
    return null;
  }
}

/** A text as base64-encoded UTF-8. */
export function base64Of(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
