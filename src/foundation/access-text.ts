/** Texts in requests for access. */
import { MAX_ASKED_BYTES } from './domain/access.ts';

/** The end of a text that was cut off. */
const CUT = '…';

/** A text for a request: control characters become blanks, and the end is cut off at the limit. */
export function requestText(text: string, maxBytes: number): string {
  const clean = text
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim();
  if (Buffer.byteLength(clean) <= maxBytes) return clean;
  let cut = '';
  let bytes = 0;
  for (const character of clean) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes - 3) break;
    cut += character;
  }
  return `${cut}${CUT}`;
}

/**
 * The description of a call: method and path, without the query, which may hold secrets. Two paths never have the same
 * complete description.
 */
export function askedCall(method: string, target: string): string {
  const [path = '/'] = target.split('?', 1);
  const visible = path.replaceAll(/[^!-~]/g, (one) => encodeURIComponent(one.toWellFormed()));
  return requestText(`${method} ${visible}`, MAX_ASKED_BYTES);
}

/** True if a description names one method and one complete path. */
export function namesCall(asked: string): boolean {
  return /^[!-~]+ \/[!-~]*$/.test(asked);
}
