/** Rules for texts and lists in payloads, which strangers write and people and assistants read. */
import { SvcError } from '../errors.ts';
import { isObject } from '../json.ts';
import { MAX_LABEL_BYTES, MAX_LABELS } from './types.ts';

/** Control characters, line breaks, the byte order mark and characters that change the text direction. */
const FORBIDDEN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/u;

/** The error for an invalid member of a payload. */
export function invalidField(field: string, why: string): SvcError {
  return new SvcError('invalid_request', { message: `"${field}" ${why}.`, details: { field } });
}

function tooLarge(field: string, size: number, limit: number, unit: string): SvcError {
  return new SvcError('too_large', {
    message: `"${field}" has ${size} ${unit}; the limit is ${limit}.`,
    details: { field, limit, size },
  });
}

/** @throws SvcError `too_large`, `invalid_request` */
export function checkText(field: string, text: string, maxBytes: number): void {
  const size = Buffer.byteLength(text, 'utf8');
  if (size > maxBytes) throw tooLarge(field, size, maxBytes, 'bytes');
  if (!text.isWellFormed() || FORBIDDEN.test(text))
    throw invalidField(field, 'contains a control character or a line break');
}

/** @throws SvcError `too_large`, `invalid_request` */
export function checkCount(field: string, items: readonly unknown[], max: number): void {
  if (items.length > max) throw tooLarge(field, items.length, max, 'entries');
}

/** Checks a list of short, non-empty texts. @throws SvcError `too_large`, `invalid_request` */
export function checkLabels(field: string, labels: readonly string[], maxItems: number = MAX_LABELS): void {
  checkCount(field, labels, maxItems);
  for (const label of labels) {
    if (label === '') throw invalidField(field, 'contains an empty entry');
    checkText(field, label, MAX_LABEL_BYTES);
  }
}

/** Checks the JSON text of a free-form object; empty if there is none. @throws SvcError `invalid_request` */
export function checkMeta(meta: string): void {
  if (parseMeta(meta) === null || !meta.isWellFormed()) throw invalidField('meta', 'is not a JSON object');
}

/** The object in a `meta` text: empty for an empty text, null if it is not a JSON object. */
export function parseMeta(meta: string): Readonly<Record<string, unknown>> | null {
  if (meta === '') return {};
  try {
    const value: unknown = JSON.parse(meta);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Returns a decoded payload if it passes its check, otherwise null. */
export function checked<T>(payload: T, check: (payload: T) => void): T | null {
  try {
    check(payload);
    return payload;
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}
