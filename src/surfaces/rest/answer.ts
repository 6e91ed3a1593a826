/** What every answer of the API has in common: its security headers and the form of its errors. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import type { ErrorBodyValue } from '../../operations/schemas.ts';
import { isPeerPath } from './peer-path.ts';

/** Status of an answer after which the connection speaks another protocol. */
export const SWITCHED = 101;
export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * For every answer, pages and refusals too. Nothing of the API may be kept by a cache, drawn into
 * another page, or read by another site: there is no CORS header anywhere.
 */
const SECURITY_HEADERS = Object.entries({
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
});

/**
 * What others wrote may be shown, on an origin of its own: it runs no script, sends no form, and
 * loads nothing but what it brings along. See docs/gateway.md.
 */
const FOREIGN_POLICY =
  "sandbox; default-src 'none'; img-src data:; media-src data:; font-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** For every answer; those below the gateway's path are shut into their sandbox, errors of our own too. */
export function setSecurityHeaders(response: ServerResponse): void {
  for (const [name, value] of SECURITY_HEADERS) response.setHeader(name, value);
  if (isPeerPath(response.req.url)) setForeignPolicy(response);
}

/** Shuts content that a remote node sends into its sandbox. */
export function setForeignPolicy(response: ServerResponse): void {
  response.setHeader('content-security-policy', FOREIGN_POLICY);
}

/** A request with more headers than are read. */
export function tooManyHeaders(limit: number): SvcError {
  return new SvcError('too_large', { status: 431, message: `A request has at most ${limit} headers.` });
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function headersOf(error: SvcError): Record<string, string> {
  const { retry_after_s: wait, allow } = error.details ?? {};
  switch (error.code) {
    case 'unauthorized':
      return { 'www-authenticate': 'Bearer realm="svcd"' };
    case 'rate_limited':
      return { 'retry-after': String(typeof wait === 'number' ? Math.max(1, Math.ceil(wait)) : 1) };
    case 'method_not_allowed':
      return { allow: typeof allow === 'string' ? allow : '' };
    default:
      return {};
  }
}

/** The error to show for whatever a call threw; `unexpected` hears of what nobody meant to throw. */
export function shownError(error: unknown, unexpected: (error: unknown) => void): SvcError {
  if (error instanceof SvcError && error.code !== 'internal') return error;
  if (error instanceof Error && error.name === 'AbortError') return new SvcError('cancelled');
  unexpected(error);
  return new SvcError('internal');
}

/** Status, headers and body of an error. */
export function errorAnswer(error: SvcError): ErrorAnswer {
  const { code, message, details } = error;
  const body: ErrorBodyValue = { error: code, message, ...(details === undefined ? {} : { details: { ...details } }) };
  return {
    status: error.status,
    headers: { 'content-type': JSON_TYPE, ...headersOf(error) },
    body: JSON.stringify(body),
  };
}

/**
 * True where a request has a body that was not read to its end: the next request on its connection
 * could only be seen behind it, so the connection ends with the answer.
 */
export function hasUnreadBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return !request.complete && (encoding !== undefined || (length !== undefined && length !== '0'));
}

/** Answers with an error on a response that nothing else writes to. */
export function sendError(response: ServerResponse, error: SvcError): void {
  const { status, headers, body } = errorAnswer(error);
  if (hasUnreadBody(response.req)) response.shouldKeepAlive = false;
  setSecurityHeaders(response);
  // A remote one may have been set by an attempt to pass its answer on.
  response.writeHead(status, STATUS_CODES[status] ?? '', { ...headers, 'content-length': Buffer.byteLength(body) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
