/**
 * `fetch` at a local address of an agent, for the transport of the SDK: streams may be silent for as long as they like,
 * and a request that certainly went nowhere, as while a daemon restarts, is sent again.
 */
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Clock } from '../../foundation/clock.ts';
import { codeOf } from '../../foundation/errors.ts';
import { readBytes } from '../rest/json-body.ts';
import type { LargeIntegers } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';

/** How long a request waits for the way to be there again, milliseconds: about what a restart takes, of either daemon. */
const REACH_AGAIN_FOR_MS = 20_000;
const REACH_AGAIN_INTERVAL_MS = 250;

/** Errors of svcd that say that nothing has reached the other side. */
const NOT_SENT: ReadonlySet<string> = new Set([
  'connect_failed',
  'network_not_ready',
  'network_unavailable',
  'clock_wrong',
  'resolve_failed',
]);
/** Answers that have no body by what they are. */
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
      // A connection that was kept may be dead, and a call is not sent twice on suspicion.
      agent: false,
      ...(signal === null || signal === undefined ? {} : { signal }),
    })
      .once('response', resolve)
      .on('error', reject)
      .end(text);
  });
}

/** The body for a reader that knows no large integers. */
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

function webAnswer(answer: IncomingMessage, large: LargeIntegers): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of Array.isArray(value) ? value : [value ?? ''])
      if (name !== 'content-length') headers.append(name, one);
  const status = answer.statusCode ?? 502;
  return new Response(BODILESS.has(status) ? null : bodyOf(answer, large), { status, headers });
}

/**
 * @param address where the agent is now; asked again after each failure
 * @param large marks large integers in answers for the transport
 * @returns what the transport of the SDK takes for `fetch`
 */
export function remoteFetch(address: () => Promise<URL>, clock: Clock, large: LargeIntegers) {
  return async (_url: string | URL, init: Init = {}): Promise<Response> => {
    const giveUpAt = clock.now() + REACH_AGAIN_FOR_MS;
    for (;;) {
      const isLast = clock.now() >= giveUpAt;
      try {
        const answer = await ask(await address(), init);
        const code = answer.headers['svc-error'];
        if (isLast || typeof code !== 'string' || !NOT_SENT.has(code)) return webAnswer(answer, large);
        answer.resume();
      } catch (error) {
        const isRefused = codeOf(error) === 'ECONNREFUSED' || codeOf(error) === 'daemon_unreachable';
        if (isLast || !isRefused) throw error;
      }
      await pause(REACH_AGAIN_INTERVAL_MS, undefined, init.signal ? { signal: init.signal } : {});
    }
  };
}
