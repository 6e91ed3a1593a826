/** Checks what a fetch is asked to send: nothing in it may break out of its place in the request. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fromBase64 } from '../../foundation/bytes.ts';
import { MAX_CALL_PATH_CHARS } from '../../foundation/domain/calls.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { MAX_HEADERS } from './headers.ts';
import type { Call } from './http-caller.ts';
import { CALLABLE } from './methods.ts';

/** Headers of a request together, characters: what the called side takes, with room for its own. */
const MAX_HEADER_CHARS = 16 * 1024;
/** Added on the way: host and framing, and on the called side who calls. */
const OWN_HEADERS = 8;

export type HeaderMap = Readonly<Record<string, string | readonly string[]>>;

export interface FetchRequest {
  readonly local: Aid;
  readonly remote: Aid;
  /** GET where it is left out; of any case. */
  readonly method?: string | undefined;
  /** Path and query, beginning with "/", percent-encoded. */
  readonly path: string;
  readonly headers?: HeaderMap | undefined;
  readonly bodyBase64?: string | undefined;
  readonly accessToken?: string | undefined;
  /** Longest silence, see `DEFAULT_CALL_TIMEOUT_MS`, which it is if it is left out; 0: none. */
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
      message: `A call takes at most ${MAX_HEADERS - OWN_HEADERS} headers of ${MAX_HEADER_CHARS} characters together.`,
    });
  return list;
}

/**
 * The call that a fetch asks for.
 * @throws SvcError `invalid_request` with the failing path, `too_large`
 */
export function callOf(request: FetchRequest): Call {
  const method = (request.method ?? 'GET').toUpperCase();
  if (!CALLABLE.has(method)) throw invalid('/method', 'This is not an HTTP method that can be called.');
  if (request.path.length > MAX_CALL_PATH_CHARS || !/^\/[!-~]*$/.test(request.path))
    throw invalid(
      '/path',
      `A path begins with "/", is percent-encoded, and has at most ${MAX_CALL_PATH_CHARS} characters.`,
    );
  const body = request.bodyBase64 === undefined ? null : fromBase64(request.bodyBase64);
  if (body === null && request.bodyBase64 !== undefined) throw invalid('/body_base64', 'This is not base64.');
  return {
    method,
    path: request.path,
    headers: headerList(request.headers ?? {}),
    body,
    accessToken: request.accessToken === '' ? undefined : request.accessToken,
  };
}
