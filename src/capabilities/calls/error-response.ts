/** Error responses of the called daemon, marked so that callers can distinguish them from the service's responses. */
import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { isServiceFault } from '../../foundation/domain/service-faults.ts';
import { codeOf, type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { serviceFailure } from '../../foundation/service-failure.ts';
import { ERROR_HEADER } from '../../network/links/http-server.ts';
import type { ResponseProblem } from './exchange.ts';
import { MAX_HEADERS, MAX_HTTP_HEADER_BYTES } from './headers.ts';

/** Error codes that a called daemon may report. Any other code becomes `protocol_error`. */
const REPORTABLE_CODES: readonly ErrorCode[] = [
  'access_denied',
  'rate_limited',
  'no_inbound',
  'tunnels_only',
  'bad_evidence',
  'inbound_unreachable',
  'bad_response',
  'loop_detected',
  'timeout',
  'too_large',
];
/** Longest accepted `Retry-After`, in seconds. */
const MAX_RETRY_AFTER_S = 86_400;

/** Carries the reason why a service gave no usable response, as one word that the caller's daemon knows. */
const REASON_HEADER = 'svc-error-reason';
const RESPONSE_PROBLEMS: Readonly<Record<ResponseProblem, string>> = {
  too_many_headers: `The service of the remote agent sent a response with more than ${MAX_HEADERS} headers.`,
  head_too_large: `The service of the remote agent sent a response head of more than ${MAX_HTTP_HEADER_BYTES} bytes.`,
  malformed: 'The service of the remote agent sent a response that is not valid HTTP/1.1.',
  program_failed: 'The program that answers calls of the remote agent failed. Its owner can see why.',
};

/** The error for a service response that cannot be passed on. */
export function badResponse(reason: ResponseProblem, cause?: unknown): SvcError {
  return new SvcError('bad_response', { message: RESPONSE_PROBLEMS[reason], details: { reason }, cause });
}

/** The error for the body of a response that ended before it was complete. */
export function brokenResponse(body: Readable, cause?: unknown): SvcError {
  const stream = body instanceof IncomingMessage ? body.socket : body;
  if (codeOf(stream.errored) === 'connection_lost')
    return new SvcError('connect_failed', {
      message: 'The connection to the remote node was lost in the middle of the response. Send the request again.',
      cause,
    });
  return new SvcError('bad_response', {
    message:
      'The service of the remote agent, or its node, broke off in the middle of the response. Send the request again. If this repeats, its owner should check the log of the service.',
    cause,
  });
}

function isResponseProblem(reason: unknown): reason is ResponseProblem {
  return typeof reason === 'string' && Object.hasOwn(RESPONSE_PROBLEMS, reason);
}

/** The response that reports an error to the caller's daemon. */
export function daemonErrorResponse(error: SvcError) {
  const body = JSON.stringify({ error: error.code, message: error.message });
  const retryAfter = error.details?.['retry_after_s'];
  const length = String(Buffer.byteLength(body));
  const headers = ['Svc-Error', error.code, 'Content-Type', 'application/json', 'Content-Length', length];
  const reason = error.details?.['reason'];
  const isTold =
    (error.code === 'bad_response' && isResponseProblem(reason)) ||
    (error.code === 'inbound_unreachable' && isServiceFault(reason));
  if (isTold) headers.push('Svc-Error-Reason', reason);
  if (typeof retryAfter === 'number') headers.push('Retry-After', `${retryAfter}`);
  return { status: error.status, headers, body };
}

/**
 * The error that a response reports, or null if the service itself responded. Only the error code is taken from the
 * response.
 */
export function errorFromResponse(answer: IncomingMessage): SvcError | null {
  const text = answer.headers[ERROR_HEADER];
  if (text === undefined) return null;
  const code = REPORTABLE_CODES.find((known) => known === text);
  if (code === undefined)
    return new SvcError('protocol_error', { message: 'The remote daemon could not serve this call.' });
  const reason = answer.headers[REASON_HEADER];
  if (code === 'bad_response' && isResponseProblem(reason)) return badResponse(reason);
  if (code === 'inbound_unreachable' && isServiceFault(reason)) return serviceFailure(reason);
  const retryAfter = Number(answer.headers['retry-after']);
  return new SvcError(
    code,
    retryAfter > 0 && retryAfter <= MAX_RETRY_AFTER_S ? { details: { retry_after_s: Math.ceil(retryAfter) } } : {},
  );
}
