/** The web API `fetch`, sent as calls to one remote agent. Redirects are not followed. */
import { createParser } from 'eventsource-parser';
import { CollectedBytes } from '../../foundation/collected-bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { hasMoreValues } from '../../foundation/json.ts';
import { isEventStream, pairs } from './headers.ts';
import type { CallResponse, HttpCaller } from './http-caller.ts';

/** Statuses of responses without a body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

export interface AgentFetchLimits {
  /** Largest response, in bytes. An event stream counts as one response. */
  readonly maxBytes: number;
  /** JSON values in a response, or in an event of an event stream. Parsing more would delay other work. */
  readonly maxValues: number;
}

export type AgentFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

function tooLarge(): SvcError {
  return new SvcError('too_large', { message: 'The response of the remote agent is too large.' });
}

/** The chunks of an event stream, within the limits. @throws SvcError `too_large` */
async function* limitedEvents({ body, release }: CallResponse, { maxBytes, maxValues }: AgentFetchLimits) {
  const decoder = new TextDecoder();
  let size = 0;
  let hasMore = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      hasMore ||= hasMoreValues(data, maxValues);
    },
  });
  for await (const read of body) {
    const chunk = Buffer.from(read);
    release(read);
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (hasMore) throw tooLarge();
    yield chunk;
  }
}

/** A body as one chunk, within the limits. @throws SvcError `too_large` */
async function* limitedBody({ body, release }: CallResponse, { maxBytes, maxValues }: AgentFetchLimits) {
  const collected = new CollectedBytes(maxBytes);
  for await (const read of body) {
    const isWhole = collected.add(Buffer.from(read));
    release(read);
    if (!isWhole) throw tooLarge();
  }
  const whole = Buffer.from(collected.bytes());
  collected.free();
  if (hasMoreValues(whole.toString('utf8'), maxValues)) throw tooLarge();
  yield whole;
}

function responseOf(answer: CallResponse, limits: AgentFetchLimits): Response {
  const headers = new Headers();
  for (const [name, value] of pairs(answer.headers)) headers.append(name, value);
  const { status } = answer;
  if (BODILESS.has(status)) {
    answer.body.resume();
    return new Response(null, { status, headers });
  }
  const isStream = isEventStream(headers.get('content-type') ?? '');
  const chunks = isStream ? limitedEvents(answer, limits) : limitedBody(answer, limits);
  return new Response(ReadableStream.from(chunks), { status, headers });
}

/**
 * A `fetch` from a local to a remote agent. Only method, path, headers, a text body and the signal of a request are
 * used. It rejects with the errors of `HttpCaller.request`, and with a TypeError or RangeError for a response that the
 * web API cannot represent.
 */
export function agentFetch(
  caller: Pick<HttpCaller, 'request'>,
  local: Aid,
  remote: Aid,
  limits: AgentFetchLimits,
): AgentFetch {
  return async (url, { method = 'GET', headers, body, signal } = {}) => {
    const { pathname, search } = new URL(url);
    const answer = await caller.request(local, remote, {
      method,
      path: pathname + search,
      headers: [...new Headers(headers)].flat(),
      body: typeof body === 'string' ? Buffer.from(body) : null,
      signal: signal ?? undefined,
      // Most of these requests look for tools in the background. They must not bother owners.
      access: null,
    });
    try {
      return responseOf(answer, limits);
    } catch (error) {
      answer.body.destroy();
      throw error;
    }
  };
}
