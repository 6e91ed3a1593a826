/**
 * `svc mcp use --stdio` and `svc mcp hub --stdio`: connects an MCP host on stdin and stdout to a shared server at a
 * local address of its agent, or to the hub of the daemon. Messages pass unchanged in every revision. The bridge
 * restores the session after a restart of a daemon or the server, without the host noticing.
 */

import { type Agent, type IncomingMessage, request } from 'node:http';
import type { Duplex, Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { PROTOCOL_VERSION_META_KEY, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { excerpt } from '../../foundation/display-text.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../foundation/json.ts';
import {
  answerTo,
  MAX_SHARED_MESSAGE_BYTES,
  MessageLines,
  type OddMessage,
  readMessageValue,
  readWith,
  TOO_LONG,
} from '../mcp/message-reader.ts';
import { finishingInput, PendingRequests } from '../mcp/stdio-transport.ts';
import { readBytes } from '../rest/json-body.ts';
import { LargeIntegers, type OnLong } from './exact-json.ts';
import {
  idOf,
  isRequest,
  isResponse,
  metaOf,
  RPC,
  type RpcId,
  type RpcMessage,
  rpcError,
  rpcParamsOf,
} from './messages.ts';

// A `fetch` to a local address of an agent for the transport of the SDK. Streams may stay silent without a timeout. A
// request that certainly did not reach the server, for example while a daemon restarts, is sent again.

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

/** How requests authenticate at the address. */
export interface BridgeAccess {
  readonly headers: Readonly<Record<string, string>>;
  /** Makes the connections of one request. Undefined if no proof is necessary. */
  readonly agent: Agent | undefined;
}

function ask(
  url: URL,
  { method = 'GET', headers, body, signal }: Init,
  access: BridgeAccess | undefined,
): Promise<IncomingMessage> {
  const sent = headers instanceof Headers ? Object.fromEntries(headers) : {};
  const text = typeof body === 'string' ? body : undefined;
  const length = text === undefined ? {} : { 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    request(url, {
      method,
      headers: { ...sent, ...access?.headers, ...length },
      // A pooled connection may be dead, and a call is not repeated on suspicion.
      agent: access?.agent ?? false,
      ...(signal === null || signal === undefined ? {} : { signal }),
    })
      .once('response', resolve)
      .on('error', reject)
      .once('close', () => access?.agent?.destroy())
      .end(text);
  });
}

/** How the messages of a server are read. */
interface Reading {
  /** Marks large integers for the transport, which does not support them. */
  readonly large: LargeIntegers;
  readonly onLong: OnLong;
  /** True if the host waits for a response with this ID. */
  readonly isExpected: (id: RpcId) => boolean;
}

/** Bytes that are read of a response without messages. */
const MAX_PAGE_BYTES = 64 * 1024;
const EVENTS = /^text\/event-stream\b/i;
const JSON_BODY = /^application\/json\b/i;

/** What a request of the transport asks for. */
interface Asked {
  /** ID of the request that the body contains. */
  readonly id: RpcId | undefined;
  /** It asks for the messages of a session. */
  readonly isStream: boolean;
}

/** The body for the transport, which reads event streams of other responses as texts of any length. */
function bodyOf(answer: IncomingMessage, { large, onLong, isExpected }: Reading, { id, isStream }: Asked) {
  const hasMessages = (answer.statusCode ?? 502) < 300 && (id !== undefined || isStream);
  const kind = answer.headers['content-type'] ?? '';
  const isWhole = JSON_BODY.test(kind);
  const checked = (text: string): string =>
    id === undefined ? text : checkedResponse(text, { id, isWhole, isExpected });
  if (hasMessages && EVENTS.test(kind))
    return ReadableStream.from(encoded(large.markedEvents(answer, onLong, checked)));
  if (isWhole) return ReadableStream.from(encoded(markedWhole(answer, (text) => large.marked(checked(text)))));
  return ReadableStream.from(beginningOf(answer));
}

async function* beginningOf(answer: AsyncIterable<Buffer>) {
  let left = MAX_PAGE_BYTES;
  for await (const chunk of answer) {
    yield chunk.subarray(0, left);
    left -= chunk.length;
    if (left <= 0) return;
  }
}

async function* markedWhole(answer: IncomingMessage, marked: (text: string) => string) {
  let bytes: Buffer;
  try {
    bytes = await readBytes(answer, MAX_SHARED_MESSAGE_BYTES, TOO_LONG);
  } catch (error) {
    throw error instanceof SvcError ? error : new Error(LOST);
  }
  yield marked(bytes.toString('utf8'));
}

/** How the text of a response is checked. */
interface ResponseCheck {
  readonly id: RpcId;
  /** The text is the whole response, not one of several messages. */
  readonly isWhole: boolean;
  readonly isExpected: (id: RpcId) => boolean;
}

/**
 * The messages that a server sent in response to a request. Without a usable response, an error response with the cause
 * replaces them. Otherwise the host would wait permanently.
 */
function checkedResponse(text: string, check: ResponseCheck): string {
  if (text === '' && !check.isWhole) return text;
  const value = readJson(text);
  const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
  const [first, ...others] = messages;
  // A server that cannot read a request does not know its ID.
  if (isObject(first) && isObject(first['error']) && (first['id'] ?? null) === null && others.length === 0)
    return JSON.stringify({ ...first, id: check.id });
  const problem = value === undefined ? unreadable(text) : messageProblem(messages, check);
  return problem === null ? text : JSON.stringify(rpcError(check.id, RPC.serverGone, problem));
}

function unreadable(text: string): string {
  return text.length > MAX_SHARED_MESSAGE_BYTES ? TOO_LONG : 'The MCP server sent a response that is not JSON.';
}

function messageProblem(messages: readonly unknown[], { id, isWhole, isExpected }: ResponseCheck): string | null {
  const responses = messages.filter((one) => isObject(one) && isResponse(one));
  if (responses.length === 0)
    return isWhole ? 'The MCP server sent a message in place of a response to the request.' : null;
  for (const response of responses) {
    const read = readMessageValue(response);
    if ('odd' in read && !isObject(memberOf(response, 'result')) && !isObject(memberOf(response, 'error')))
      return 'The MCP server sent a response whose result is not an object.';
    if ('odd' in read) return `The MCP server sent an invalid response. ${read.odd.why}`;
  }
  const ids = responses.map((one) => memberOf(one, 'id'));
  if (ids.some((one) => one === id || ((typeof one === 'string' || typeof one === 'number') && isExpected(one))))
    return null;
  return `The MCP server responded with another ID (${excerpt(JSON.stringify(ids[0]) ?? 'none')}) than that of the request (${JSON.stringify(id)}).`;
}

async function* encoded(texts: AsyncIterable<string>) {
  for await (const text of texts) yield Buffer.from(text);
}

/** @throws Error with the cause if no response to a request can follow */
function webResponse(answer: IncomingMessage, reading: Reading, asked: Asked): Response {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of Array.isArray(value) ? value : [value ?? ''])
      if (name !== 'content-length') headers.append(name, one);
  const status = answer.statusCode ?? 502;
  const problem =
    asked.id === undefined || status >= 300 ? null : headProblem(status, answer.headers['content-type'] ?? '');
  if (problem !== null) {
    answer.destroy();
    throw new Error(problem);
  }
  return new Response(BODILESS.has(status) ? null : bodyOf(answer, reading, asked), { status, headers });
}

/** Why a successful response to a request cannot contain a message. */
function headProblem(status: number, kind: string): string | null {
  if (status === 202 || BODILESS.has(status))
    return `The MCP server accepted the request without a response (HTTP ${status}).`;
  if (EVENTS.test(kind) || JSON_BODY.test(kind)) return null;
  const name = kind === '' ? 'no content type' : `the content type ${excerpt(kind)}`;
  return `The MCP server responded with ${name} in place of JSON or an event stream. Check its URL.`;
}

/** The ID of the request in a body. */
function requestIn(body: unknown): RpcId | undefined {
  const message = typeof body === 'string' ? readJson(body) : undefined;
  return isObject(message) && isRequest(message) ? idOf(message) : undefined;
}

/**
 * @param address returns the current URL of the agent; called again after each failure
 * @param access creates the access of one request
 * @returns a `fetch` for the transport of the SDK
 */
function remoteFetch({ address, clock, access }: BridgeParts, reading: Reading) {
  return async (_url: string | URL, init: Init = {}): Promise<Response> => {
    const asked = { id: requestIn(init.body), isStream: init.method === 'GET' };
    const giveUpAt = clock.monotonic() + RETRY_FOR_MS;
    for (;;) {
      const isLast = clock.monotonic() >= giveUpAt;
      try {
        const answer = await ask(await address(), init, access?.());
        const code = answer.headers['svc-error'];
        if (isLast || typeof code !== 'string' || !NOT_SENT.has(code)) return webResponse(answer, reading, asked);
        answer.resume();
      } catch (error) {
        const isRefused = codeOf(error) === 'ECONNREFUSED' || codeOf(error) === 'daemon_unreachable';
        if (isLast || !isRefused) throw error;
      }
      await pause(RETRY_INTERVAL_MS, undefined, init.signal ? { signal: init.signal } : {});
    }
  };
}

/** Reconnects a broken stream until the host disconnects. */
const RESUME = {
  initialReconnectionDelay: 500,
  reconnectionDelayGrowFactor: 1.5,
  maxReconnectionDelay: 15_000,
  maxRetries: Number.MAX_SAFE_INTEGER,
} as const;

const LOST = 'The connection was lost before the response arrived.';
/** The ID of an initialize request that the bridge repeats. */
const AGAIN = 'svc-begin-again';

/** Time limit for ending the session on the server, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2000;

export interface BridgeParts {
  readonly input: Readable;
  readonly output: Writable;
  /** The current URL of the agent's server. */
  readonly address: () => Promise<URL>;
  readonly clock: Clock;
  /** Creates the access of one request. Omitted if the address needs none. */
  readonly access?: () => BridgeAccess;
}

/** A request of the host without a response. */
interface PendingRequest {
  readonly giveUp: AbortController;
  readonly isModern: boolean;
}

export class Bridge {
  /** Settles when the host has disconnected and its requests have responses. */
  readonly closed: Promise<void>;
  readonly #parts: BridgeParts;
  readonly #input: Duplex;
  readonly #host: StdioServerTransport;
  readonly #waiting = new Map<RpcId, PendingRequest>();
  readonly #large = new LargeIntegers();
  readonly #pending = new PendingRequests();
  readonly #over: () => void;
  #remote: StreamableHTTPClientTransport;
  /** The initialize request of the host, repeated if the server loses the session. */
  #initialize: RpcMessage | null = null;
  #turn: Promise<void> = Promise.resolve();
  #beginning: Promise<void> | null = null;
  /** Receives the response to an initialize request that the bridge repeated. */
  #onBegun: ((answer: RpcMessage) => void) | null = null;

  private constructor(parts: BridgeParts) {
    this.#parts = parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#over = resolve;
    this.#input = finishingInput(parts, this.#pending, parts.clock);
    this.#host = readWith(
      new StdioServerTransport(this.#input, parts.output),
      new MessageLines({ onOdd: (odd) => this.#oddFromHost(odd) }),
    );
    this.#remote = this.#newRemote();
  }

  static async start(parts: BridgeParts): Promise<Bridge> {
    const bridge = new Bridge(parts);
    const host = bridge.#host;
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    host.onmessage = (message) => {
      bridge.#pending.received(message);
      // A message without a response arrives before the next one is sent, because stdio keeps their order.
      bridge.#turn = bridge.#turn.then(() => bridge.#fromHost(message));
    };
    // oxlint-disable-next-line prefer-add-event-listener -- as above
    host.onclose = () => detach(bridge.#end());
    await bridge.#remote.start();
    await host.start();
    return bridge;
  }

  /** Closes the bridge, even with pending requests. */
  async close(): Promise<void> {
    this.#input.destroy();
    await this.#host.close();
    await this.closed;
  }

  #newRemote(): StreamableHTTPClientTransport {
    const remote = new StreamableHTTPClientTransport(new URL('http://127.0.0.1'), {
      fetch: remoteFetch(this.#parts, {
        large: this.#large,
        onLong: (odd) => this.#oddFromRemote(odd),
        isExpected: (id) => this.#waiting.has(id) || (id === AGAIN && this.#onBegun !== null),
      }),
      reconnectionOptions: RESUME,
    });
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    remote.onmessage = (message) => this.#fromRemote(remote, this.#large.restored(message));
    return remote;
  }

  /** An error response reaches the waiting side: the server for a response of the host, otherwise the host. */
  #oddFromHost(odd: OddMessage): void {
    if (odd.kind !== 'response') return this.#pending.refuse(this.#parts.output, odd);
    this.#turn = this.#turn.then(() => this.#sendError(odd));
  }

  /** A message of the server that is too long or ambiguous. @returns the error response for the host */
  #oddFromRemote(odd: OddMessage): RpcMessage | undefined {
    if (odd.kind === 'response') return answerTo(odd);
    if (odd.kind === 'request') this.#turn = this.#turn.then(() => this.#sendError(odd));
    return undefined;
  }

  async #sendError(odd: OddMessage): Promise<void> {
    if (typeof odd.id !== 'string' && typeof odd.id !== 'number') return;
    await this.#remote.send(parseJSONRPCMessage(answerTo(odd))).catch(() => {});
  }

  async #fromHost(message: JSONRPCMessage): Promise<void> {
    const method = memberOf(message, 'method');
    if (method === 'initialize') this.#initialize = message;
    if (method === 'notifications/cancelled' && this.#cancel(message)) return;
    const id = isRequest(message) ? idOf(message) : undefined;
    if (id === undefined) return this.#remote.send(message).catch(() => {});
    const waiting: PendingRequest = {
      giveUp: new AbortController(),
      isModern: metaOf(message)[PROTOCOL_VERSION_META_KEY] !== undefined,
    };
    this.#waiting.set(id, waiting);
    detach(this.#ask(message, id, waiting).catch((error: unknown) => this.#failed(id, waiting, error)));
  }

  async #ask(message: JSONRPCMessage, id: RpcId, waiting: PendingRequest): Promise<void> {
    const send = (): Promise<void> => {
      const remote = this.#remote;
      return remote.send(message, {
        requestSignal: waiting.giveUp.signal,
        onRequestStreamEnd: () => this.#failed(id, waiting, new Error(LOST)),
      });
    };
    const used = this.#remote;
    try {
      await send();
    } catch (error) {
      if (!this.#hasLostSession(error, used) || waiting.isModern || memberOf(message, 'method') === 'initialize')
        throw error;
      // The request was not carried out, because the server no longer knows the session.
      await this.#restartSession(used);
      await send();
    }
  }

  #hasLostSession(error: unknown, used: StreamableHTTPClientTransport): boolean {
    return memberOf(error, 'data', 'status') === 404 && used.sessionId !== undefined && this.#initialize !== null;
  }

  /** Starts a session to replace a lost one. Concurrent requests share it. */
  #restartSession(lost: StreamableHTTPClientTransport): Promise<void> {
    if (this.#remote !== lost) return this.#beginning ?? Promise.resolve();
    const begin = async (): Promise<void> => {
      await lost.close();
      await this.#remote.start();
      const { promise, resolve } = Promise.withResolvers<RpcMessage>();
      this.#onBegun = resolve;
      await this.#remote.send(parseJSONRPCMessage({ ...this.#initialize, id: AGAIN }));
      const answer = await promise;
      if (answer['error'] !== undefined)
        throw new Error('The MCP server stopped, and no new session could be started.');
      await this.#remote.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    };
    this.#remote = this.#newRemote();
    this.#beginning = begin().finally(() => {
      this.#beginning = null;
      this.#onBegun = null;
    });
    return this.#beginning;
  }

  #fromRemote(remote: StreamableHTTPClientTransport, received: JSONRPCMessage): void {
    const read = readMessageValue(received);
    const message = 'message' in read ? read.message : this.#oddFromRemote(read.odd);
    if (message === undefined) return;
    if (isResponse(message)) {
      const version = memberOf(message, 'result', 'protocolVersion');
      const isBeginning = idOf(message) === AGAIN && this.#onBegun !== null;
      if ((isBeginning || idOf(message) === this.#initialize?.['id']) && typeof version === 'string')
        remote.setProtocolVersion(version);
      if (isBeginning) return this.#onBegun?.(message);
      const id = idOf(message);
      // The host waits for no response to a cancelled request.
      if (id !== undefined && !this.#waiting.delete(id)) return;
    }
    this.#toHost(message);
  }

  /**
   * A cancelled request gets no response. In revisions without sessions, closing the stream cancels it: then the server
   * needs no message, and the result is true.
   */
  #cancel(message: RpcMessage): boolean {
    const { requestId } = rpcParamsOf(message);
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return false;
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    if (waiting?.isModern !== true) return false;
    waiting.giveUp.abort();
    return true;
  }

  #failed(id: RpcId, waiting: PendingRequest, error: unknown): void {
    if (this.#waiting.get(id) !== waiting) return;
    this.#waiting.delete(id);
    this.#toHost(errorResponse(id, error));
  }

  #toHost(message: RpcMessage): void {
    // A host that has exited has closed stdin too.
    detach(
      this.#host
        .send(parseJSONRPCMessage(message))
        .catch(() => {})
        .finally(() => this.#pending.sent(message)),
    );
  }

  async #end(): Promise<void> {
    const { clock } = this.#parts;
    this.#input.destroy();
    const late = Promise.withResolvers<void>();
    const timer = clock.after(CLOSE_TIMEOUT_MS, late.resolve);
    const farewell = this.#turn.then(() => this.#remote.terminateSession()).catch(() => {});
    await Promise.race([farewell, late.promise]);
    timer.cancel();
    await this.#remote.close();
    this.#over();
  }
}

/** The error response for the host: the server's own error, or a message of svcd. */
function errorResponse(id: RpcId, error: unknown): RpcMessage {
  const text = memberOf(error, 'data', 'text');
  const body = typeof text === 'string' ? readJson(text) : undefined;
  const own = memberOf(body, 'error');
  if (isObject(own) && typeof own['code'] === 'number') return { jsonrpc: '2.0', id, error: own };
  const why = memberOf(body, 'message');
  if (typeof own === 'string' && typeof why === 'string')
    return rpcError(id, RPC.serverGone, `${own}: ${why}`, { code: own });
  if (memberOf(error, 'data', 'status') === 401)
    return rpcError(
      id,
      RPC.serverGone,
      'The server requires authorization. Give its URL to the client ("svc mcp use").',
    );
  const status = memberOf(error, 'data', 'status');
  if (typeof status === 'number')
    return rpcError(id, RPC.serverGone, `The MCP server responded with HTTP ${status}${shownBody(text)}`);
  return rpcError(id, RPC.serverGone, error instanceof Error ? error.message : 'The request failed.');
}

/** The beginning of an error page, if it is a text for people. */
function shownBody(text: unknown): string {
  const plain = typeof text === 'string' && !text.trimStart().startsWith('<') ? excerpt(text.trim()) : '';
  return plain === '' ? '.' : `: ${plain}`;
}
