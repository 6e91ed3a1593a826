/** Validates a fetch request, so that no value can inject anything into the HTTP request. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fromBase64 } from '../../foundation/bytes.ts';
import { MAX_CALL_PATH_CHARS } from '../../foundation/domain/calls.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { MAX_HEADERS } from './headers.ts';
import type { Call } from './http-caller.ts';
import { CALLABLE } from './methods.ts';

/** Total size of a request's headers, in characters. The called side accepts this much plus its own headers. */
const MAX_HEADER_CHARS = 16 * 1024;
/** Headers added on the way: host, framing, and the caller's identity on the called side. */
const OWN_HEADERS = 8;

export type HeaderMap = Readonly<Record<string, string | readonly string[]>>;

export interface FetchRequest {
  readonly local: Aid;
  readonly remote: Aid;
  /** In any case. Default: GET. */
  readonly method?: string | undefined;
  /** Path and query, percent-encoded, starting with "/". */
  readonly path: string;
  readonly headers?: HeaderMap | undefined;
  readonly bodyBase64?: string | undefined;
  readonly accessToken?: string | undefined;
  /** Longest silence in milliseconds; 0 means no limit. Default: `DEFAULT_CALL_TIMEOUT_MS`. */
  readonly timeoutMs?: number | undefined;
}

function invalid(path: string, message: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

function headerList(headers: HeaderMap): string[] {
  const list: string[] = [];
  for (const [name, values] of Object.entries(headers)) {
    for (const value of typeof values === 'string' ? [values] : values) {
      try {
        validateHeaderName(name);
        validateHeaderValue(name, value);
      } catch {
        throw invalid('/headers', 'A header has a name or a value that HTTP does not allow.');
      }
      list.push(name, value);
    }
  }
  if (list.length / 2 > MAX_HEADERS - OWN_HEADERS || list.join('').length > MAX_HEADER_CHARS)
    throw new SvcError('too_large', {
      message: `A call can have at most ${MAX_HEADERS - OWN_HEADERS} headers with ${MAX_HEADER_CHARS} characters in total.`,
    });
  return list;
}

/**
 * The call that a fetch request describes.
 * @throws SvcError `invalid_request` with the path of the invalid field, `too_large`
 */
export function callOf(request: FetchRequest): Call {
  const method = (request.method ?? 'GET').toUpperCase();
  if (!CALLABLE.has(method)) throw invalid('/method', 'Invalid HTTP method.');
  if (request.path.length > MAX_CALL_PATH_CHARS || !/^\/[!-~]*$/.test(request.path))
    throw invalid(
      '/path',
      `The path must begin with "/", be percent-encoded, and have at most ${MAX_CALL_PATH_CHARS} characters.`,
    );
  const body = request.bodyBase64 === undefined ? null : fromBase64(request.bodyBase64);
  if (body === null && request.bodyBase64 !== undefined) throw invalid('/body_base64', 'Invalid base64.');
  return {
    method,
    path: request.path,
    headers: headerList(request.headers ?? {}),
    body,
    accessToken: request.accessToken === '' ? undefined : request.accessToken,
  };
}
