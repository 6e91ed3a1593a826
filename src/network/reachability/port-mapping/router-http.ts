/** HTTP to a router: one request, one answer of a bounded size, no redirects, no second host. */
import { request } from 'node:http';
import type { Clock } from '../../../foundation/clock.ts';
import { abortError, deadline } from '../../../foundation/deadline.ts';
import { SvcError } from '../../../foundation/errors.ts';

/** Longest answer of a router that is read, bytes. */
const MAX_ROUTER_ANSWER_BYTES = 128 * 1024;
/** How long a router may take for one, milliseconds. */
const ROUTER_ANSWER_MS = 5000;

interface RouterRequest {
  readonly url: URL;
  /** Sent with POST; GET without. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouterAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Asks a router; what it answers is a stranger's text.
 * @throws SvcError `connect_failed` where it does not answer or says too much, `timeout`, `cancelled`
 */
export async function askRouter(
  clock: Clock,
  { url, body, headers = {} }: RouterRequest,
  signal: AbortSignal,
): Promise<RouterAnswer> {
  using limit = deadline(clock, ROUTER_ANSWER_MS, signal);
  const { promise, resolve, reject } = Promise.withResolvers<RouterAnswer>();
  const method = body === undefined ? 'GET' : 'POST';
  const sent = request(url, { method, headers: { ...headers, Connection: 'close' }, agent: false }, (answer) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    answer.on('error', reject);
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ROUTER_ANSWER_BYTES) reject(new RangeError('The answer is too long.'));
      else chunks.push(chunk);
    });
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
  });
  sent.on('error', reject);
  const abort = (): void => reject(abortError(limit.signal));
  limit.signal.addEventListener('abort', abort, { once: true });
  if (limit.signal.aborted) abort();
  else sent.end(body);
  try {
    return await promise;
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw new SvcError('connect_failed', { message: 'The router does not answer as it should.', cause });
  } finally {
    sent.destroy();
  }
}
