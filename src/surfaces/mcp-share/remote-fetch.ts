/**
 * A `fetch` to a local address of an agent for the transport of the SDK. Streams may stay silent without a timeout. A
 * request that certainly did not reach the server, for example while a daemon restarts, is sent again.
 */
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Clock } from '../../foundation/clock.ts';
import { codeOf } from '../../foundation/errors.ts';
import { readBytes } from '../rest/json-body.ts';
import type { LargeIntegers } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';

/**
 * How long a request is retried while the agent is unreachable, in milliseconds: about the restart time of a daemon.
 */
const RETRY_FOR_MS = 20_000;
const RETRY_INTERVAL_MS = 250;

/** svcd errors which mean that the remote side has received nothing. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'connect_failed',
  'network_not_ready',
  'network_unavailable',
  'clock_wrong',
  'resolve_failed',
]);
/** Statuses of responses without a body. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

interface Init {
  readonly method?: string | undefined;
  readonly headers?: unknown;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

function ask(url: URL, { method = 'GET', headers, body, signal }: Init): Promise<IncomingMessage> {
  const sent = headers instanceof Headers ? Object.fromEntries(headers) : {};
  const text = typeof body === 'string' ? body : undefined;
  const length = text === undefined ? {} : { 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    request(url, {
      method,
      headers: { ...sent, ...length },
      // A pooled connection may be dead, and a call is not repeated on suspicion.
      agent: false,
      ...(signal === null || signal === undefined ? {} : { signal }),
    })
      .once('response', resolve)
      .on('error', reject)
      .end(text);
  });
}

/** The body for a reader that does not support large integers. */
function bodyOf(answer: IncomingMessage, large: LargeIntegers): ReadableStream {
  const kind = answer.headers['content-type'] ?? '';
  if (/^text\/event-stream\b/i.test(kind)) return ReadableStream.from(encoded(large.markedEvents(answer)));
  if (/^application\/json\b/i.test(kind)) return ReadableStream.from(encoded(markedWhole(answer, large)));
  return ReadableStream.from(answer);
}

async function* markedWhole(answer: IncomingMessage, large: LargeIntegers) {
  const bytes = await readBytes(answer, MAX_SHARED_MESSAGE_BYTES);
  yield large.marked(bytes.toString('utf8'));
}

async function* encoded(texts: AsyncIterable<string>) {
  for await (const text of texts) yield Buffer.from(text);
}

function webResponse(answer: IncomingMessage, large: LargeIntegers): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of Array.isArray(value) ? value : [value ?? ''])
      if (name !== 'content-length') headers.append(name, one);
  const status = answer.statusCode ?? 502;
  return new Response(BODILESS.has(status) ? null : bodyOf(answer, large), { status, headers });
}

/**
 * @param address returns the current URL of the agent; called again after each failure
 * @param large marks large integers in responses for the transport
 * @returns a `fetch` for the transport of the SDK
 */
export function remoteFetch(address: () => Promise<URL>, clock: Clock, large: LargeIntegers) {
  return async (_url: string | URL, init: Init = {}): Promise<Response> => {
    const giveUpAt = clock.now() + RETRY_FOR_MS;
    for (;;) {
      const isLast = clock.now() >= giveUpAt;
      try {
        const answer = await ask(await address(), init);
        const code = answer.headers['svc-error'];
        if (isLast || typeof code !== 'string' || !NOT_SENT.has(code)) return webResponse(answer, large);
        answer.resume();
      } catch (error) {
        const isRefused = codeOf(error) === 'ECONNREFUSED' || codeOf(error) === 'daemon_unreachable';
        if (isLast || !isRefused) throw error;
      }
      await pause(RETRY_INTERVAL_MS, undefined, init.signal ? { signal: init.signal } : {});
    }
  };
}
