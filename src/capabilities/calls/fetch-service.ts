/** One call with its whole answer in memory, within a size and a time. */
import { toBase64 } from '../../foundation/base64.ts';
import type { Clock } from '../../foundation/clock.ts';
import { deadline } from '../../foundation/deadline.ts';
import { DEFAULT_CALL_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS, MAX_FETCHED_BYTES } from '../../foundation/domain/calls.ts';
import { SvcError } from '../../foundation/errors.ts';
import { callOf, type FetchRequest } from './fetch-request.ts';
import { pairs, type RawHeaders } from './headers.ts';
import type { CallAnswer, HttpCaller } from './http-caller.ts';

export interface FetchResult {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string[]>;
  /** Base64. */
  body: string;
  /** The body was longer than what is kept. */
  truncated: boolean;
}

interface FetchDependencies {
  readonly caller: HttpCaller;
  readonly clock: Clock;
}

/**
 * Calls a remote agent and collects its answer. Redirects are not followed.
 * @throws SvcError `invalid_request`, `too_large`, `timeout`, `cancelled` and what `HttpCaller.request` gives
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
  const { bytes, truncated } = await collect(answer, limit.signal);
  return { status: answer.status, headers: headerMap(answer.headers), body: toBase64(bytes), truncated };
}

async function collect({ body }: CallAnswer, signal: AbortSignal) {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      const room = MAX_FETCHED_BYTES - length;
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      length += chunk.length;
      // Leaving the loop destroys the body: the stream is reset and nothing more is sent.
      if (length > MAX_FETCHED_BYTES) break;
    }
  } catch (error) {
    if (signal.reason instanceof SvcError) throw signal.reason;
    throw new SvcError('connect_failed', { message: 'The answer broke off before its end.', cause: error });
  }
  return { bytes: Buffer.concat(chunks), truncated: length > MAX_FETCHED_BYTES };
}

/** Headers by lower-case name, each with all of its values. */
function headerMap(raw: RawHeaders): Record<string, string[]> {
  const groups = Map.groupBy(pairs(raw), ([name]) => name.toLowerCase());
  return Object.fromEntries(groups.entries().map(([name, all]) => [name, all.map(([, value]) => value)]));
}
