/** How commands reach the daemon: requests with a token use only connections that are proven to end at the daemon. */
import { Agent, type IncomingMessage, request as plainRequest } from 'node:http';
import { isLoopbackHost } from '../../foundation/address.ts';
import type { ClientFetch, ClientOptions } from '../../operations/client.ts';
import type { ProvenAgent } from '../proven-agent.ts';

// `fetch` for the client over `node:http`. The global one takes 60 ms to load.

/** Unlike the global agent it ignores NODE_USE_ENV_PROXY: the daemon is on this machine. */
const direct = new Agent();

type Init = Parameters<ClientFetch>[1];

async function answerTo(
  url: URL,
  { method, headers, body, signal }: Init,
  agent: Agent | undefined,
): Promise<IncomingMessage> {
  // The local daemon speaks plain HTTP. TLS is loaded only for https URLs.
  const request = url.protocol === 'https:' ? (await import('node:https')).request : plainRequest;
  const isHere = url.protocol === 'http:' && isLoopbackHost(url.hostname.replace(/^\[|\]$/g, ''));
  const used = agent ?? (isHere ? direct : undefined);
  // Node sends no length for DELETE, and the body would be parsed as another request.
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

/** The first value of a header, or null. */
function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/**
 * Like `fetch`, it rejects with the cause of a failure, or with the reason of an abort. It does not follow redirects.
 * @param agent makes the connections; default: the global agent
 */
export async function httpFetch(url: string, init: Init, agent?: Agent): ReturnType<ClientFetch> {
  const { signal } = init;
  const failure = (cause: unknown): unknown => {
    if (signal.aborted) return signal.reason;
    return new TypeError('request failed', { cause });
  };
  try {
    const answer = await answerTo(new URL(url), init, agent);
    const status = answer.statusCode ?? 0;
    if (status >= 300 && status < 400 && answer.headers.location !== undefined) {
      answer.destroy();
      throw Object.assign(new Error('redirects are not followed'), { code: 'REDIRECT' });
    }
    const text = await textOf(answer);
    const headers = { get: (name: string): string | null => headerOf(answer, name) };
    return { status, headers, text: async () => text };
  } catch (error) {
    throw failure(error);
  }
}

export interface DaemonPlace {
  readonly baseUrl: string;
  readonly token: string;
  readonly dataDir: string | null;
}

/** The functions a client needs to send requests. The proof is loaded only if there is a token. */
export function daemonFetch({ baseUrl, token, dataDir }: DaemonPlace): Pick<ClientOptions, 'fetch' | 'streamFetch'> {
  if (token === '') return { fetch: (url, init) => httpFetch(url, init) };
  let loaded: Promise<ProvenAgent | undefined> | undefined;
  const agent = (): Promise<ProvenAgent | undefined> => {
    loaded ??= import('../proven-agent.ts').then(({ provenAgent }) => provenAgent(baseUrl, { token, dataDir }));
    return loaded;
  };
  /** False if the daemon has no token. */
  const needsToken = async (proven: ProvenAgent, { signal }: { readonly signal?: AbortSignal | null }) => {
    try {
      return await proven.needsToken();
    } catch (cause) {
      throw signal?.aborted === true ? signal.reason : new TypeError('request failed', { cause });
    }
  };
  return {
    fetch: async (url, init) => {
      const proven = await agent();
      if (proven === undefined || (await needsToken(proven, init))) return await httpFetch(url, init, proven);
      return await httpFetch(url, { ...init, headers: withoutToken(init.headers) });
    },
    streamFetch: async (url, init) => {
      const proven = await agent();
      if (proven === undefined) return await fetch(url, init);
      if (!(await needsToken(proven, init)))
        return await fetch(url, { ...init, headers: withoutToken(Object.fromEntries(new Headers(init.headers))) });
      return await (await import('../client/unlimited-fetch.ts')).unlimitedFetch(url, init, proven);
    },
  };
}

function withoutToken({ authorization: _token, ...headers }: Readonly<Record<string, string>>): Record<string, string> {
  return headers;
}
