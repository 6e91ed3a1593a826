/**
 * `fetch` without Node's time limits, which end a request after 300 seconds without a response and a response after 300
 * seconds of silence. Here only the signal ends a request; see docs/limits.md.
 */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import { detach } from '../../foundation/detached.ts';

/** Statuses of responses without a body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** Pooled connections do not keep the program running. */
const AGENT = new Agent({ keepAlive: true });

type Init = NonNullable<ConstructorParameters<typeof Request>[1]>;

/** Decodes the content codings of a body, as `fetch` does. An unknown coding leaves the bytes unchanged. */
function bodyOf(incoming: IncomingMessage): Readable {
  const codings = (incoming.headers['content-encoding'] ?? '').split(',').map((one) => one.trim().toLowerCase());
  const known = codings.filter((one) => one !== '' && one !== 'identity').map((one) => DECODERS[one]);
  let body: Readable = incoming;
  for (const make of known.toReversed()) {
    if (make === undefined) return incoming;
    const decoder = make();
    const source = body;
    // A failure destroys the decoder, and its reader receives the error.
    detach(pipeline(source, decoder).catch(() => {}));
    body = decoder;
  }
  return body;
}

function responseOf(incoming: IncomingMessage, method: string): Response {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(incoming.headersDistinct))
    for (const value of values) headers.append(name, value);
  const { statusCode: status = 0, statusMessage: statusText = '' } = incoming;
  const isBodiless = method === 'HEAD' || NO_BODY.has(status);
  if (isBodiless) incoming.resume();
  return new Response(isBodiless ? null : Readable.toWeb(bodyOf(incoming)), { status, statusText, headers });
}

/**
 * Does not follow redirects. Rejects like `fetch`: with the reason of the signal, or a TypeError with a cause.
 * @param through makes plain HTTP connections
 */
export async function unlimitedFetch(url: string | URL, init: Init, through: Agent = AGENT): Promise<Response> {
  const request = new Request(url, { ...init, duplex: 'half' });
  const { signal, method } = request;
  const { protocol } = new URL(request.url);
  const { body } = init;
  const whole = typeof body === 'string' || body instanceof Uint8Array ? Buffer.from(body) : null;
  const length = whole === null ? {} : { 'content-length': whole.length };
  const headers = { accept: '*/*', ...Object.fromEntries(request.headers), ...length };
  const [send, agent] = protocol === 'https:' ? [secureRequest, undefined] : [plainRequest, through];
  try {
    signal.throwIfAborted();
    const outgoing = send(request.url, { method, headers, agent });
    const stop = (): void => {
      outgoing.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason }));
    };
    signal.addEventListener('abort', stop, { once: true });
    outgoing.once('close', () => signal.removeEventListener('abort', stop));
    const answered = once(outgoing, 'response');
    // Errors after the head are reported to the reader of the body.
    outgoing.on('error', () => {});
    if (whole !== null || request.body === null) outgoing.end(whole ?? undefined);
    else detach(pipeline(Readable.fromWeb(request.body), outgoing).catch(() => {}));
    const [incoming]: IncomingMessage[] = await answered;
    if (incoming === undefined) throw new Error('no response');
    return responseOf(incoming, method);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new TypeError('fetch failed', { cause: error });
  }
}
