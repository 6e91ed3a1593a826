/** A call whose complete response is buffered in memory, with limits on size and idle time. */

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fromBase64 } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { CollectedBytes } from '../../foundation/collected-bytes.ts';
import { type Deadline, deadline } from '../../foundation/deadline.ts';
import {
  DEFAULT_CALL_TIMEOUT_MS,
  MAX_CALL_PATH_CHARS,
  MAX_CALL_TIMEOUT_MS,
  MAX_FETCHED_BYTES,
} from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { TraceHeaders } from '../../foundation/traces/trace-context.ts';
import type { AskOptions } from '../../network/links/types.ts';
import { askOptions, NOTE_HEADER } from './ask-options.ts';
import { brokenResponse } from './error-response.ts';
import { filterHeaders, headerOf, MAX_HEADERS, type RawHeaders } from './headers.ts';
import type { Call, CallResponse, HttpCaller } from './http-caller.ts';
import { CALLABLE } from './methods.ts';
import { withApiTrace } from './trace-headers.ts';

/** The collected bytes of a body, and whether it was cut. */
interface Collected {
  /** The receiver frees them. */
  readonly bytes: CollectedBytes;
  /** The body was longer than the limit. */
  readonly truncated: boolean;
}

export interface FetchResult extends Collected {
  readonly status: number;
  /** Keyed by lower-case name. */
  readonly headers: Record<string, string[]>;
}

/**
 * Calls a remote agent and collects its response. Redirects are not followed.
 * @throws SvcError `invalid_request`, `too_large`, `timeout`, `cancelled`, and the errors of `HttpCaller.request`
 */
export async function fetchWhole(
  caller: HttpCaller,
  clock: Clock,
  request: FetchRequest,
  signal: AbortSignal,
): Promise<FetchResult> {
  const call = callOf(request);
  const timeoutMs = Math.min(request.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS);
  const waitMs = timeoutMs === 0 ? 0 : (call.access?.waitS ?? 0) * 1000;
  using limit = deadline(clock, timeoutMs + waitMs, signal);
  const answer = await caller.request(request.local, request.remote, { ...call, signal: limit.signal });
  limit.restart();
  const body = await collect(answer, limit);
  return { status: answer.status, headers: headerMap(answer.headers), ...body };
}

/** Reads a body up to the limit. It uses no iterator, which would cost more than the bytes of a small response. */
function collect({ body }: CallResponse, limit: Deadline): Promise<Collected> {
  const { promise, resolve, reject } = Promise.withResolvers<Collected>();
  const bytes = new CollectedBytes(MAX_FETCHED_BYTES);
  let truncated = false;
  const { signal } = limit;
  const broken = (cause?: unknown): void => {
    if (signal.reason instanceof SvcError) reject(signal.reason);
    else reject(brokenResponse(body, cause));
  };
  body.on('data', (chunk: Buffer) => {
    limit.restart();
    if (truncated || bytes.add(chunk)) return;
    truncated = true;
    resolve({ bytes, truncated });
    // This resets the stream, and the sender stops.
    body.destroy();
  });
  body.once('end', () => resolve({ bytes, truncated }));
  body.on('error', broken);
  body.once('close', () => {
    if (!body.readableEnded && !truncated) broken();
  });
  if (body.destroyed && !body.readableEnded) broken(body.errored);
  return promise;
}

/** Headers by lower-case name, each with all its values. */
function headerMap(raw: RawHeaders): Record<string, string[]> {
  const values = new Map<string, string[]>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name, value] = [raw[i]?.toLowerCase() ?? '', raw[i + 1] ?? ''];
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  }
  return Object.fromEntries(values);
}

// Validates a fetch request, so that no value can inject anything into the HTTP request.

/** Total size of a request's headers, in characters. The called side accepts this much plus its own headers. */
const MAX_HEADER_CHARS = 16 * 1024;
/** Headers added on the way: host, framing, and the caller's identity on the called side. */
const OWN_HEADERS = 8;

const NOTHING_ASKED: AskOptions = { note: '', waitS: 0 };

type HeaderMap = Readonly<Record<string, string | readonly string[]>>;

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
  /** A note to the owner of the agent, if it must allow the caller. Default: the header `Svc-Access-Note`. */
  readonly note?: string | undefined;
  /** How long to wait for the owner's decision, seconds. Default: `wait` of the header `Prefer`. */
  readonly waitS?: number | undefined;
  /** The trace that the call continues unless its own headers name one. */
  readonly trace?: TraceHeaders | undefined;
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

function withoutNote(headers: readonly string[]): readonly string[] {
  return headerOf(headers, NOTE_HEADER) === undefined
    ? headers
    : filterHeaders(headers, (name) => name !== NOTE_HEADER);
}

/**
 * The call that a fetch request describes.
 * @throws SvcError `invalid_request` with the path of the invalid field, `too_large`
 */
function callOf(request: FetchRequest): Call {
  const method = (request.method ?? 'GET').toUpperCase();
  if (!CALLABLE.has(method)) throw invalid('/method', 'Invalid HTTP method.');
  if (request.path.length > MAX_CALL_PATH_CHARS || !/^\/[!-~]*$/.test(request.path))
    throw invalid(
      '/path',
      `The path must begin with "/", be percent-encoded, and have at most ${MAX_CALL_PATH_CHARS} characters.`,
    );
  const body = request.bodyBase64 === undefined ? null : fromBase64(request.bodyBase64);
  if (body === null && request.bodyBase64 !== undefined) throw invalid('/body_base64', 'Invalid base64.');
  const headers = request.headers === undefined ? [] : headerList(request.headers);
  const inHeaders = headers.length === 0 ? NOTHING_ASKED : askOptions((wanted) => headerOf(headers, wanted));
  return {
    method,
    path: request.path,
    headers: withApiTrace(withoutNote(headers), request.trace),
    body,
    accessToken: request.accessToken === '' ? undefined : request.accessToken,
    access: { note: request.note ?? inHeaders.note, waitS: request.waitS ?? inHeaders.waitS },
  };
}
