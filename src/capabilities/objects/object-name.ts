/** Names of files as they are shown to others, and taken from others. */
import { MAX_FILE_NAME_BYTES } from '../../foundation/domain/objects.ts';
import { UNSAFE } from '../../foundation/log-text.ts';

/** A plain file name: no folders, nothing invisible, not too long; `fallback` where nothing is left. */
export function safeName(name: string | undefined, fallback: string): string {
  const plain = (name ?? '').split(/[/\\]/).at(-1)?.replace(UNSAFE, '').trim() ?? '';
  if (plain === '' || plain === '.' || plain === '..') return fallback;
  let cut = plain;
  while (Buffer.byteLength(cut) > MAX_FILE_NAME_BYTES) cut = cut.slice(0, -1);
  // Half of a pair of code units may be left over.
  return cut.replace(/[\uD800-\uDBFF]$/, '');
}

/** Offers the bytes for saving, never for showing (RFC 6266). */
export function disposition(name: string): string {
  // Besides letters and digits only what RFC 5987 lets stand as it is.
  const encoded = encodeURIComponent(name).replace(/['()*!]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

/** The name in a header of that form; undefined for any other. */
export function nameInDisposition(header: string | undefined): string | undefined {
  const encoded = /^attachment; filename\*=UTF-8''([\w.~%-]{1,1024})$/.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
