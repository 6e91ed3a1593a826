/** One byte range of a request (RFC 9110, section 14). */

/** Bytes `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** What a `Range` header asks for: a part, nothing that is there, or no more than the whole. */
export type RangeWish = ByteRange | 'unsatisfiable' | 'whole';

/**
 * Reads a `Range` header. Several ranges, other units and malformed ones are answered with the
 * whole, as the standard allows.
 * @param size length of the whole, bytes
 */
export function parseRange(header: string | undefined, size: number): RangeWish {
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

/** A `Content-Range` header: the part, and the size of the whole. Null where it is malformed. */
export function parseContentRange(header: string | undefined): (ByteRange & { readonly size: number }) | null {
  const [, first, last, whole] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(header ?? '') ?? [];
  if (first === undefined) return null;
  const [start, end, size] = [Number(first), Number(last), Number(whole)];
  return start <= end && end < size ? { start, end, size } : null;
}

/** True where a list of entity tags, as in `If-None-Match`, names this one. */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === tag);
}
