/** Single byte ranges of HTTP requests (RFC 9110, section 14). */

/** Bytes `start` to `end`, both inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The meaning of a `Range` header. */
export type RequestedRange = ByteRange | 'unsatisfiable' | 'whole';

/**
 * Parses a `Range` header. For several ranges, other units and malformed headers the result is the whole, as the
 * standard allows.
 * @param size of the whole, bytes
 */
export function parseRange(header: string | undefined, size: number): RequestedRange {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return 'whole';
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return 'whole';
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}

/** Parses a `Content-Range` header: the part and the size of the whole. Null if it is malformed. */
export function parseContentRange(header: string | undefined): (ByteRange & { readonly size: number }) | null {
  const [, first, last, whole] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? '') ?? [];
  if (first === undefined) return null;
  const [start, end, size] = [Number(first), Number(last), Number(whole)];
  return start <= end && end < size ? { start, end, size } : null;
}

/** Whether a list of entity tags, as in `If-None-Match`, contains this tag. */
export function matchesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === tag);
}
