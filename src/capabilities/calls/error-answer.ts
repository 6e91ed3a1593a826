/** How the daemon on the called side says that it, and not the service, answers. */
import type { IncomingMessage } from 'node:http';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { ERROR_HEADER } from '../../network/links/http-server.ts';

/** What a called daemon may say; anything else it says is a `protocol_error`. */
const TELLABLE: readonly ErrorCode[] = [
  'access_denied',
  'rate_limited',
  'no_inbound',
  'tunnels_only',
  'bad_evidence',
  'inbound_unreachable',
  'timeout',
  'too_large',
];
/** Longest wait that is believed, seconds. */
const MAX_RETRY_AFTER_S = 86_400;

/** The answer that tells a caller's daemon about an error. */
export function daemonErrorAnswer(error: SvcError) {
  const body = JSON.stringify({ error: error.code, message: error.message });
  const retryAfter = error.details?.['retry_after_s'];
  const length = String(Buffer.byteLength(body));
  const headers = ['Svc-Error', error.code, 'Content-Type', 'application/json', 'Content-Length', length];
  if (typeof retryAfter === 'number') headers.push('Retry-After', `${retryAfter}`);
  return { status: error.status, headers, body };
}

/** The error that an answer stands for; null where the service itself answered. Only its code is taken over. */
export function errorOfAnswer(answer: IncomingMessage): SvcError | null {
  const text = answer.headers[ERROR_HEADER];
  if (text === undefined) return null;
  const code = TELLABLE.find((known) => known === text);
  if (code === undefined)
    return new SvcError('protocol_error', { message: 'The remote daemon could not serve this call.' });
  const retryAfter = Number(answer.headers['retry-after']);
  return new SvcError(
    code,
    retryAfter > 0 && retryAfter <= MAX_RETRY_AFTER_S ? { details: { retry_after_s: Math.ceil(retryAfter) } } : {},
  );
}
