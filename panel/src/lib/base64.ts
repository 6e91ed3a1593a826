/** Base64 and UTF-8 where there is no Node. */

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** The text of base64 of UTF-8; null where the bytes are none. */
export function textOf(base64: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(base64));
  } catch {
    return null;
  }
}

/** Base64 of a text in UTF-8. */
export function base64Of(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
