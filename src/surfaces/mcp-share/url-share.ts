/**
 * Shares a wrapped Streamable HTTP server at a URL. Requests to the server and to its OAuth metadata are forwarded, and
 * no other paths. Bytes pass unchanged, except for the caller's identity and filtered tools.
 */
import { once } from 'node:events';
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as plainRequest,
  type ServerResponse,
} from 'node:http';
import { request as secureRequest } from 'node:https';
import { isPlainHeader } from '../../capabilities/calls/tool-limit.ts';
import { MCP_PATH } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject, parseIntegers, readJson } from '../../foundation/json.ts';
import { flushHead } from '../../foundation/sockets.ts';
import { answerTo, MAX_SHARED_MESSAGE_BYTES, TOO_LONG } from '../mcp/message-reader.ts';
import {
  isMetadataPath,
  MAX_METADATA_BYTES,
  RESOURCE_METADATA,
  withOwnAddresses,
  withOwnChallenge,
} from '../origin/oauth-addresses.ts';
import { readBytes } from '../rest/json-body.ts';
import type { Backend, SharedRequest } from './backend.ts';
import { ChangedEvents } from './exact-json.ts';
import type { ToolRules } from './gate.ts';
import { Backlog } from './limits.ts';
import {
  fromCaller,
  idOf,
  RPC,
  type RpcMessage,
  readMessage,
  rpcError,
  sendMessage,
  sendRejection,
} from './messages.ts';

// An event stream with messages that are filtered before they reach the caller.

/** Applies `change` to a text if it is a message. */
function changeMessage(text: string, change: (message: RpcMessage) => RpcMessage): string {
  if (!isObject(readJson(text))) return text;
  const message = parseIntegers(text);
  if (!isObject(message)) return text;
  const after = change(message);
  return after === message ? text : JSON.stringify(after);
}

/** Changes the messages of an event stream. */
function changedStream(change: (message: RpcMessage) => RpcMessage): ChangedEvents {
  return new ChangedEvents(
    (odd) => (odd.kind === 'response' ? answerTo(odd) : undefined),
    (data) => changeMessage(data, change),
  );
}

/** Hop-by-hop headers, and headers for the local daemon only. */
const DROPPED_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'svc-caller-proof',
  'transfer-encoding',
]);

/** True for a header of the daemon with the identity of the caller. */
function isOwn(name: string): boolean {
  return name.startsWith('svc-') || name === 'forwarded';
}

function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name]) => !DROPPED_HEADERS.has(name));
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

export class UrlShare implements Backend {
  readonly #url: URL;
  readonly #rules: ToolRules;
  readonly #backlog = new Backlog();

  constructor(url: URL, rules: ToolRules) {
    this.#url = url;
    this.#rules = rules;
  }

  async serve(shared: SharedRequest): Promise<void> {
    const { request, response, caller } = shared;
    // Use the path as sent: `new URL` would treat a path such as //host/mcp as a host.
    const [pathname = ''] = (request.url ?? '/').split('?', 1);
    if (isMetadataPath(pathname)) return this.#serveMetadata(shared, pathname);
    if (pathname !== MCP_PATH) return sendRejection(response, 404, RPC.unknownMethod, 'Not found.');
    // The stream of a session, and its end.
    if (request.method === 'GET' || request.method === 'DELETE') {
      const refusal = this.#rules.refusal(caller, {}, request);
      return refusal === null ? this.#pass(shared, this.#url, null) : sendMessage(response, 400, refusal);
    }
    if (request.method !== 'POST') return sendRejection(response, 405, RPC.unknownMethod, 'Method not allowed.');
    const read = await readMessage(shared, this.#backlog);
    if (read === null) return;
    try {
      const refusal = this.#rules.refusal(caller, read.message, request);
      if (refusal !== null) return sendMessage(response, 200, refusal);
      await this.#pass(shared, this.#url, read.message, read.release);
    } finally {
      read.release();
    }
  }

  async close(): Promise<void> {}

  async #serveMetadata(shared: SharedRequest, pathname: string): Promise<void> {
    const { request, response } = shared;
    if (request.method !== 'GET') return sendRejection(response, 405, RPC.unknownMethod, 'Use GET to read metadata.');
    // The path of the server follows the well-known path. Clients use a different server path.
    const path =
      pathname === `${RESOURCE_METADATA}${MCP_PATH}` ? `${RESOURCE_METADATA}${this.#url.pathname}` : pathname;
    const answer = await this.#ask(shared, new URL(path, this.#url), null);
    if (answer === null) return;
    const text = (await readBytes(answer, MAX_METADATA_BYTES)).toString();
    const body = withOwnAddresses(text, (url) => this.#translate(url, request));
    response
      .writeHead(answer.statusCode ?? 502, {
        ...forwardedHeaders(answer.headers),
        'content-length': Buffer.byteLength(body),
      })
      .end(body);
  }

  /** Translates a URL of the server into the URL that callers of the local daemon use. */
  #translate(url: URL, { headers }: IncomingMessage): string {
    const { pathname } = this.#url;
    const rest = url.pathname.replace(`${RESOURCE_METADATA}${pathname}`, `${RESOURCE_METADATA}${MCP_PATH}`);
    const path = url.pathname === pathname ? MCP_PATH : rest;
    return `http://${headers.host ?? this.#url.host}${path}${url.search}`;
  }

  /** @param onRead called when the server has responded, and so has read the message */
  async #pass(shared: SharedRequest, url: URL, message: RpcMessage | null, onRead?: () => void): Promise<void> {
    const { request, response, caller, signal } = shared;
    const answer = await this.#ask(shared, url, message);
    onRead?.();
    if (answer === null) return;
    const headers = forwardedHeaders(answer.headers);
    const challenge = answer.headers['www-authenticate'];
    if (challenge !== undefined)
      headers['www-authenticate'] = withOwnChallenge(challenge, (one) => this.#translate(one, request));
    const length = answer.headers['content-length'];
    const kind = answer.headers['content-type'] ?? '';
    const change = this.#rules.limits(caller) ? (answered: RpcMessage) => this.#rules.shown(caller, answered) : null;
    if (change !== null && /^application\/json\b/i.test(kind)) {
      const bytes = await readBytes(answer, MAX_SHARED_MESSAGE_BYTES, TOO_LONG).catch((error: unknown) => {
        if (error instanceof SvcError && error.code === 'too_large') return null;
        throw error;
      });
      if (bytes === null)
        return sendMessage(response, 200, rpcError(idOf(message ?? {}) ?? null, RPC.invalidRequest, TOO_LONG));
      const text = bytes.toString();
      const body = changeMessage(text, change);
      response.writeHead(answer.statusCode ?? 502, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
      return;
    }
    const limited = change !== null && /^text\/event-stream\b/i.test(kind) ? changedStream(change) : null;
    const known = length === undefined || limited !== null ? {} : { 'content-length': length };
    flushHead(response.writeHead(answer.statusCode ?? 502, { ...headers, ...known }));
    await streamResponse(answer, response, signal, limited);
  }

  /** The server's response; null if there is none and an error was sent to the caller. */
  async #ask({ request, response, caller, signal }: SharedRequest, url: URL, message: RpcMessage | null) {
    const ask = url.protocol === 'https:' ? secureRequest : plainRequest;
    const body = message === null ? null : Buffer.from(JSON.stringify(fromCaller(message, caller)));
    const kept = Object.entries(forwardedHeaders(request.headers)).filter(
      ([name]) => !name.startsWith('content-') && (!this.#rules.limits(caller) || isPlainHeader(name) || isOwn(name)),
    );
    const headers = {
      ...Object.fromEntries(kept),
      // A response that is filtered must be readable.
      'accept-encoding': 'identity',
      // The body is written again, so the headers that described it do not apply.
      ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
    };
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        ask(url, { method: request.method ?? 'GET', headers, signal, agent: false }, resolve)
          .on('error', reject)
          .end(body ?? undefined);
      });
    } catch {
      if (signal.aborted) return null;
      const id = message === null ? null : (idOf(message) ?? null);
      sendMessage(response, 502, rpcError(id, RPC.serverGone, 'The MCP server does not respond.'));
      return null;
    }
  }
}

/** Streams a response. */
async function streamResponse(
  answer: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  limited: ChangedEvents | null,
) {
  try {
    for await (const chunk of answer) {
      const part: string | Buffer = limited === null ? chunk : limited.push(chunk);
      if (part.length > 0 && !response.write(part)) await once(response, 'drain', { signal });
    }
    response.end();
  } catch {
    // One side failed. Destroy the other, or half a message would look complete.
    response.destroy();
  }
}
