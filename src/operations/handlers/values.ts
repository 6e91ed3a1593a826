/** Reads what stands as text in a checked input. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';

/**
 * The bytes of a member of a request body.
 * @throws SvcError `invalid_request` where they are not in standard base64
 */
export function bytesOf(base64: string, member: string): Uint8Array {
  const bytes = fromBase64(base64);
  if (bytes !== null) return bytes;
  throw new SvcError('invalid_request', {
    message: `${member} is not standard base64.`,
    details: { in: 'body', path: `/${member}` },
  });
}

/** Unix milliseconds of a timestamp. */
export function timeOf(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}

/** A timestamp of Unix milliseconds; null where there is none. */
export function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

/** Both cursors were sent. */
export function eitherCursor(): SvcError {
  return new SvcError('invalid_request', {
    message: 'Send either after_seq or before_seq.',
    details: { in: 'query', path: '/before_seq' },
  });
}
