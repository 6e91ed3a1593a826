/** `fetch` as the client needs it, over `node:http`: the one of Node takes a command that asks once 60 ms to load. */
import { Agent, type IncomingMessage, request as plainRequest } from 'node:http';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { ClientFetch } from '../../operations/client.ts';

/** Unlike the global one it ignores the proxy of the environment (NODE_USE_ENV_PROXY): the daemon is on this machine. */
const direct = new Agent();

type Init = Parameters<ClientFetch>[1];

async function answerTo(
  url: URL,
  { method, headers, body, signal }: Init,
  agent: Agent | undefined,
): Promise<IncomingMessage> {
  // The daemon of this machine speaks plain HTTP: only who asks another way loads TLS.
  const request = url.protocol === 'https:' ? (await import('node:https')).request : plainRequest;
  const isHere = url.protocol === 'http:' && isLoopbackHost(url.hostname.replace(/^\[|\]$/g, ''));
  const used = agent ?? (isHere ? direct : undefined);
  // By itself Node says no length for DELETE, and the body would be read as another request.
  const length = body === null ? {} : { 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    request(
      url,
      { method, headers: { ...headers, ...length }, signal, ...(used === undefined ? {} : { agent: used }) },
      resolve,
    )
      .on('error', reject)
      .end(body ?? undefined);
  });
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of answer.setEncoding('utf8')) text += String(part);
  return text;
}

/** A header, or none; where it stands several times, the first. */
function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/**
 * As `fetch` does, what fails is thrown with its cause, and what is given up with the reason. No redirect is followed.
 * @param agent makes the connections; left out: that of Node
 */
export async function httpFetch(url: string, init: Init, agent?: Agent): ReturnType<ClientFetch> {
  const { signal } = init;
  const failure = (cause: unknown): unknown => {
    if (signal.aborted) return signal.reason;
    return new TypeError('the request failed', { cause });
  };
  try {
    const answer = await answerTo(new URL(url), init, agent);
    const status = answer.statusCode ?? 0;
    if (status >= 300 && status < 400 && answer.headers.location !== undefined) {
      answer.destroy();
      throw Object.assign(new Error('a redirect is not followed'), { code: 'REDIRECT' });
    }
    const text = await textOf(answer);
    const headers = { get: (name: string): string | null => headerOf(answer, name) };
    return { status, headers, text: async () => text };
  } catch (error) {
    throw failure(error);
  }
}
