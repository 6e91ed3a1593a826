/** Base64 of the API. */

/** UTF-8 in standard base64, in Node and in browsers. */
export function base64Of(text: string | Uint8Array): string {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
