/** A call whose complete response is buffered in memory, with limits on size and idle time. */
import type { Clock } from '../../foundation/clock.ts';
import { CollectedBytes } from '../../foundation/collected-bytes.ts';
import { type Deadline, deadline } from '../../foundation/deadline.ts';
import { DEFAULT_CALL_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS, MAX_FETCHED_BYTES } from '../../foundation/domain/calls.ts';
import { SvcError } from '../../foundation/errors.ts';
import { callOf, type FetchRequest } from './fetch-request.ts';
import { pairs, type RawHeaders } from './headers.ts';
import type { CallResponse, HttpCaller } from './http-caller.ts';

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

interface FetchDependencies {
  readonly caller: HttpCaller;
  readonly clock: Clock;
}

/**
 * Calls a remote agent and collects its response. Redirects are not followed.
 * @throws SvcError `invalid_request`, `too_large`, `timeout`, `cancelled`, and the errors of `HttpCaller.request`
 */
export async function fetchWhole(
  { caller, clock }: FetchDependencies,
  request: FetchRequest,
  signal: AbortSignal,
): Promise<FetchResult> {
  const call = callOf(request);
  const timeoutMs = Math.min(request.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS);
  using limit = deadline(clock, timeoutMs, signal);
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
    else reject(new SvcError('connect_failed', { message: 'The response ended early.', cause }));
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
  const groups = Map.groupBy(pairs(raw), ([name]) => name.toLowerCase());
  return Object.fromEntries(groups.entries().map(([name, all]) => [name, all.map(([, value]) => value)]));
}
