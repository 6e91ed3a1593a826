/** Parses text in validated input. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { CallContext } from '../operation.ts';

/**
 * Decodes a member of a request body.
 * @throws SvcError `invalid_request` if it is not standard base64
 */
export function bytesOf(base64: string, member: string): Uint8Array {
  const bytes = fromBase64(base64);
  if (bytes !== null) return bytes;
  throw new SvcError('invalid_request', {
    message: `${member} is not standard base64.`,
    details: { in: 'body', path: `/${member}` },
  });
}

/**
 * The bytes of a body that a request has as text or as base64.
 * @returns undefined if it has neither
 * @throws SvcError `invalid_request` if it has both, or if one is invalid
 */
export function bodyOf(text: string | undefined, base64: string | undefined, member: string): Uint8Array | undefined {
  if (text === undefined) return base64 === undefined ? undefined : bytesOf(base64, member);
  if (base64 !== undefined)
    throw new SvcError('invalid_request', {
      message: `Send either text or ${member}.`,
      details: { in: 'body', path: `/${member}` },
    });
  if (text.isWellFormed()) return Buffer.from(text);
  throw new SvcError('invalid_request', {
    message: 'The text is not well-formed Unicode.',
    details: { in: 'body', path: '/text' },
  });
}

/** Unix milliseconds of a timestamp. */
export function timeOf(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}

/** The timestamp of Unix milliseconds, or null. */
export function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** Rejects input with both cursors. */
export function eitherCursor(): SvcError {
  return new SvcError('invalid_request', {
    message: 'Send either after_seq or before_seq.',
    details: { in: 'query', path: '/before_seq' },
  });
}

/** Calls back with whether the response arrived. If the surface cannot tell, it counts as arrived. */
export function afterAnswer(context: CallContext, settled: (arrived: boolean) => void): void {
  if (context.onAnswered === undefined) settled(true);
  else context.onAnswered(settled);
}
