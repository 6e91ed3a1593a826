/** Security headers of all API responses, and the format of errors. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import type { ErrorBodyValue } from '../../operations/schemas.ts';
import { isPeerPath } from './panel-path.ts';

/** Status code after which the connection uses another protocol. */
export const SWITCHING_PROTOCOLS = 101;
export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Set on every response, pages and errors included. Caches must not store a response of the API, and other sites must
 * not embed or read it. Therefore there are no CORS headers.
 */
const SECURITY_HEADERS = Object.entries({
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
});

/**
 * Policy for remote content. It is shown in an opaque origin without scripts and forms, and loads only inline content.
 * See docs/gateway.md.
 */
const FOREIGN_POLICY =
  "sandbox; default-src 'none'; img-src data:; media-src data:; font-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Sets the headers of every response. All responses below the gateway's path are sandboxed, including errors. */
export function setSecurityHeaders(response: ServerResponse): void {
  for (const [name, value] of SECURITY_HEADERS) response.setHeader(name, value);
  if (isPeerPath(response.req.url)) setForeignPolicy(response);
}

/** Sandboxes content from a remote node. */
export function setForeignPolicy(response: ServerResponse): void {
  response.setHeader('content-security-policy', FOREIGN_POLICY);
}

/** The error for a request with too many headers. */
export function tooManyHeaders(limit: number): SvcError {
  return new SvcError('too_large', { status: 431, message: `A request can have at most ${limit} headers.` });
}

export interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function headersOf(error: SvcError): Record<string, string> {
  const { retry_after_s: wait, request: id, allow } = error.details ?? {};
  switch (error.code) {
    case 'unauthorized':
      return { 'www-authenticate': 'Bearer realm="svcd"' };
    case 'rate_limited':
      return { 'retry-after': String(typeof wait === 'number' ? Math.max(1, Math.ceil(wait)) : 1) };
    case 'access_pending':
      return {
        'retry-after': String(typeof wait === 'number' ? wait : 1),
        ...(typeof id === 'string' ? { 'svc-access-request': id } : {}),
      };
    case 'method_not_allowed':
      return { allow: typeof allow === 'string' ? allow : '' };
    default:
      return {};
  }
}

/** The error to show for a thrown value. `unexpected` receives values that are not SvcErrors. */
export function publicError(error: unknown, unexpected: (error: unknown) => void): SvcError {
  if (error instanceof SvcError && error.code !== 'internal') return error;
  if (error instanceof Error && error.name === 'AbortError') return new SvcError('cancelled');
  unexpected(error);
  return new SvcError('internal');
}

/** Status, headers and body of an error. */
export function errorResponse(error: SvcError): ErrorResponse {
  const { code, message, details } = error;
  const body: ErrorBodyValue = { error: code, message, ...(details === undefined ? {} : { details: { ...details } }) };
  return {
    status: error.status,
    headers: { 'content-type': JSON_TYPE, ...headersOf(error) },
    body: JSON.stringify(body),
  };
}

/**
 * True if the request body was not read to its end. The next request could only be read after it, so the connection
 * must close after the response.
 */
export function hasUnreadBody(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  return !request.complete && (encoding !== undefined || (length !== undefined && length !== '0'));
}

/** Sends an error on a response that nothing else writes to. */
export function sendError(response: ServerResponse, error: SvcError): void {
  const { status, headers, body } = errorResponse(error);
  if (hasUnreadBody(response.req)) response.shouldKeepAlive = false;
  setSecurityHeaders(response);
  // An earlier attempt to pass on a remote response may have set its status text.
  response.writeHead(status, STATUS_CODES[status] ?? '', { ...headers, 'content-length': Buffer.byteLength(body) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
