/** The calling side: HTTP requests from a local agent to a remote agent over pooled link streams. */
import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { askedCall } from '../../foundation/access-text.ts';
import type { Clock } from '../../foundation/clock.ts';
import { Semaphore } from '../../foundation/concurrency.ts';
import { isToolName } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import { asStep, type TracedRequest } from '../../foundation/traces/traced-request.ts';
import type { Traces } from '../../foundation/traces/traces.ts';
import type { AccessAsk, AskOptions, AskOwner, LinkStream, Links } from '../../network/links/types.ts';
import { brokenResponse, errorFromResponse } from './error-response.ts';
import type { CallSigner } from './evidence/call-signer.ts';
import { type Body, ExchangeFailure, exchange, type HttpResponse } from './exchange.ts';
import {
  endToEnd,
  headerOf,
  isEventStream,
  MAX_LINK_HEADERS,
  type RawHeaders,
  reasonPhrase,
  SET_PER_HOP,
} from './headers.ts';
import { LinkAgent, type LinkRequestOptions, type SpareStreams } from './link-agent.ts';
import { BODILESS, IDEMPOTENT } from './methods.ts';
import { traceHop, UNTRACED } from './trace-headers.ts';
import { isOffered } from './upgrades.ts';

/** Concurrent calls from one local agent to one remote agent. Further calls are queued. */
export const MAX_CALLS_PER_TARGET = 64;
/** Concurrent connections that switched protocols. They count separately, because they may last for days. */
export const MAX_SWITCHED_PER_TARGET = 64;
/** Concurrent event streams, which also count separately: as many as the called side allows one node. */
export const MAX_EVENT_STREAMS_PER_TARGET = 1024;
/** Silence on a reused stream after which the caller checks that the node is still reachable, in milliseconds. */
export const REUSED_SILENCE_MS = 1_000;

/**
 * Time limit for reaching the remote node, in milliseconds: enough to detect a dead pooled connection and to dial
 * again.
 */
const OPEN_TIMEOUT_MS = 30_000;
const NO_BODY = new Uint8Array(0);

export interface Call {
  /** In upper case; not CONNECT. */
  readonly method: string;
  /** Path and query, starting with "/". */
  readonly path: string;
  /** Alternating names and values, as in `IncomingMessage.rawHeaders`. Hop-by-hop headers are removed. */
  readonly headers: RawHeaders;
  /** A stream is read with backpressure. Its owner destroys it. */
  readonly body: Body;
  /** Length of a streamed body in bytes, if known. */
  readonly bodyLength?: number;
  readonly accessToken?: string | undefined;
  /** For the owner of the called agent, if it must allow the caller. Default: no note, no wait. Null never asks it. */
  readonly access?: AskOptions | null;
  /** Cancels the call, even while the response is being read. If the reason is an SvcError, it is thrown unchanged. */
  readonly signal?: AbortSignal | undefined;
}

/** The response of the remote agent's service: its head, and its body as a stream that must be read or destroyed. */
export interface CallResponse {
  readonly status: number;
  readonly statusText: string;
  /** End-to-end headers, alternating names and values. */
  readonly headers: RawHeaders;
  /** Fails if the response breaks off. `rawTrailers` is filled at the end. */
  readonly body: IncomingMessage;
  /** Like `LinkStream.release`, for chunks of the body. */
  readonly release: (chunk: Buffer) => void;
}

/** The part of a response from which another one is made. */
export type ReadResponse = Pick<CallResponse, 'status' | 'headers' | 'body'>;

/** The service switched protocols. Bytes flow both ways until either side ends. */
export interface SwitchedCall {
  readonly status: 101;
  /** The protocol that the service chose. */
  readonly protocol: string;
  readonly statusText: string;
  readonly headers: RawHeaders;
  readonly socket: Duplex;
  /** Bytes that the service already sent. */
  readonly head: Buffer;
}

export interface HttpCallerOptions {
  /** Purpose of the links: a service (`http`, the default), the API of a node, or objects. */
  readonly purpose?: 'http' | 'admin' | 'object';
  /** As in `OpenOptions`, for agents that a search found. */
  readonly isUnasked?: boolean;
  /** Signs the calls of agents that give evidence. If omitted, no call is signed. */
  readonly signer?: CallSigner;
  /** Asks the owner of an agent that refused a call. If omitted, refusals are final. */
  readonly askOwner?: AskOwner;
  /** Records the calls. If omitted, trace headers pass unchanged. */
  readonly traces?: Traces;
}

/** One combination of caller, called agent and access token. */
interface Target {
  readonly key: string;
  readonly agent: LinkAgent;
  readonly slots: Semaphore;
  /** Opens a stream outside the pool. */
  readonly open: () => Promise<LinkStream>;
  /** Connections that switched protocols. */
  switched: number;
  /** Event streams in progress. */
  eventStreams: number;
  /** Requests on reused streams without a response, and when they began, in the clock's time. */
  readonly waiting: Map<ClientRequest, number>;
  /** Checks them. It is not restarted for each request. */
  check: SilenceWatch | null;
}

const LONG_LIVED = {
  switched: {
    limit: MAX_SWITCHED_PER_TARGET,
    text: 'connections to this agent have switched protocols, such as WebSockets.',
  },
  eventStreams: { limit: MAX_EVENT_STREAMS_PER_TARGET, text: 'event streams from this agent are open.' },
} as const;

export class HttpCaller {
  readonly #links: Links;
  readonly #clock: Clock;
  readonly #options: HttpCallerOptions;
  readonly #targets = new Map<string, Target>();
  readonly #spare: SpareStreams = { taken: 0 };

  constructor(links: Links, clock: Clock, options: HttpCallerOptions = {}) {
    this.#links = links;
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Calls a remote agent. An idempotent call without a streamed body is repeated once if its pooled stream was dead. No
   * other call is repeated.
   * @throws SvcError `resolve_failed`, `connect_failed`, `access_denied`, `rate_limited`, `no_inbound`,
   *   `inbound_unreachable`, `timeout`, `protocol_error`, `cancelled`
   */
  async request(local: Aid, remote: Aid, call: Call): Promise<CallResponse> {
    const answer = await this.#call(local, remote, call, framing(call));
    if ('socket' in answer) {
      answer.socket.destroy();
      throw new SvcError('protocol_error', { message: 'The service switched protocols without a request.' });
    }
    return answer;
  }

  /**
   * Asks the service to switch to one of these protocols. The service may also send a normal response.
   * @throws SvcError as `request`
   */
  async upgrade(
    local: Aid,
    remote: Aid,
    call: Call,
    protocols: readonly string[],
  ): Promise<CallResponse | SwitchedCall> {
    const headers = ['Connection', 'Upgrade', 'Upgrade', protocols.join(', '), ...framing(call)];
    const answer = await this.#call(local, remote, call, headers);
    if (!('socket' in answer) || isOffered(answer.protocol, protocols)) return answer;
    answer.socket.destroy();
    throw new SvcError('protocol_error', { message: 'The service switched to a protocol that was not offered.' });
  }

  /** Closes all pooled streams. Calls in progress fail. */
  stop(): void {
    for (const { agent, check } of this.#targets.values()) {
      check?.stop();
      agent.destroy();
    }
    this.#targets.clear();
  }

  /** The steps of a call: trace and permission, and for each attempt slot, signature, send, retry and response. */
  async #call(local: Aid, remote: Aid, given: Call, framed: RawHeaders): Promise<CallResponse | SwitchedCall> {
    const { traces, askOwner } = this.#options;

    // Trace. Calls that are not sampled keep their headers.
    const origin = { side: 'caller', caller: local, called: remote, method: given.method } as const;
    const startedAt = this.#clock.monotonic();
    const hop = traces === undefined ? UNTRACED : traceHop(traces, given.headers, origin, ownCall);
    const call = hop === UNTRACED ? given : { ...given, headers: hop.headers(given.headers) };
    const trace = hop.request ?? undefined;

    // Permission. A body that is read only once waits until the link is permitted.
    const { accessToken, access = NO_WAIT, body, signal } = call;
    const mayAsk = askOwner !== undefined && access !== null && accessToken === undefined && !isSessionUpkeep(call);
    try {
      try {
        if (mayAsk && access.waitS > 0 && body instanceof Readable)
          (await this.#open(local, remote, accessToken, trace)).destroy();
        return await this.#attempt(local, remote, call, framed, trace);
      } catch (error) {
        if (!mayAsk || !(error instanceof SvcError) || error.code !== 'access_denied') throw error;
        await asStep(trace, 'ask', () => askOwner(local, remote, { ...askFor(call), ...access }, signal));
        if (body instanceof Readable && (body.readableDidRead || access.waitS === 0)) throw repeatNow(error);
        return await this.#attempt(local, remote, call, framed, trace);
      }
    } catch (error) {
      if (trace !== undefined) trace.finish(error);
      else traces?.failed(origin, traces.now() - (this.#clock.monotonic() - startedAt), error);
      throw error;
    }
  }

  async #attempt(
    local: Aid,
    remote: Aid,
    call: Call,
    framed: RawHeaders,
    trace: TracedRequest | undefined,
  ): Promise<CallResponse | SwitchedCall> {
    const target = this.#target(local, remote, call.accessToken);
    const { signal } = call;
    let leave = (): void => {};
    try {
      // Slot.
      const { slots } = target;
      const isTraced = trace !== undefined && slots.busy >= MAX_CALLS_PER_TARGET;
      const free = await (isTraced ? asStep(trace, 'queue', () => slots.acquire(signal)) : slots.acquire(signal));
      leave = () => {
        free();
        if (target.agent.open === 0) this.#prune(target);
      };

      // Signature. A short body is read first, so that the signature can cover it.
      const isSigned = this.#options.signer?.signs(local) === true;
      const sent = isSigned && isShort(call) ? { ...call, body: await wholeBody(call.body) } : call;
      const kept = endToEnd(sent.headers, SET_PER_HOP);

      // Send, and retry on another stream if the reused one was dead. Each attempt has its own signature.
      const send = () => {
        const headers = isSigned ? this.#signed(local, remote, sent, kept) : kept;
        return this.#send(target, sent, ['Host', remote, ...headers, ...framed], trace);
      };
      const { message, switched } = await send().catch((error: unknown) => {
        if (!mayRepeat(sent, error)) throw error;
        target.agent.dropIdle();
        return send();
      });

      // Response.
      if (switched !== null) {
        this.#count(target, switched.socket, 'switched');
        leave();
        if (trace !== undefined) trace.status = 101;
        trace?.finish();
        return { ...head(message), status: 101, protocol: message.headers.upgrade ?? '', ...switched };
      }
      message.once('close', leave);
      const received = receivedOf(message);
      if (isEventStream(message.headers['content-type'])) {
        this.#count(target, message, 'eventStreams');
        leave();
      }
      return trace === undefined ? received : traced(received, trace);
    } catch (error) {
      leave();
      throw errorOf(error, signal);
    }
  }

  /** The headers of one attempt with its signature. Evidence may have been switched off meanwhile. */
  #signed(caller: Aid, called: Aid, { method, path: target, body }: Call, headers: RawHeaders): readonly string[] {
    const known = body instanceof Uint8Array ? body : body === null ? NO_BODY : null;
    return this.#options.signer?.sign({ caller, called, method, target, headers, body: known }) ?? headers;
  }

  /**
   * Counts a connection that switched protocols, or an event stream.
   * @throws SvcError `rate_limited` if there are too many already
   */
  #count(target: Target, stream: Duplex | IncomingMessage, kind: keyof typeof LONG_LIVED): void {
    const { limit, text } = LONG_LIVED[kind];
    if (target[kind] >= limit) {
      stream.destroy();
      throw new SvcError('rate_limited', {
        message: `${limit} ${text} Close some of them first.`,
        details: { limit },
      });
    }
    target[kind]++;
    stream.once('close', () => {
      target[kind]--;
      this.#prune(target);
    });
  }

  /** Sends a request over a pooled stream or a new one. */
  async #send(
    target: Target,
    { method, path, body, signal }: Call,
    headers: string[],
    trace: TracedRequest | undefined,
  ): Promise<HttpResponse> {
    // protocol-calls.md, step 2
    const { agent, waiting } = target;
    const options: LinkRequestOptions = { agent, method, path, ...(trace ? { trace } : {}) };
    let sent: ClientRequest | undefined;
    const watch = (request: ClientRequest): void => {
      // The agent traces a new link.
      if (!request.reusedSocket) return;
      sent = request;
      waiting.set(request, this.#clock.monotonic());
      target.check ??= new SilenceWatch(this.#clock, REUSED_SILENCE_MS, () => this.#checkReused(target));
      if (trace !== undefined) request.once('socket', (link) => traceReused(trace, link));
    };
    try {
      return await exchange({
        options,
        headers,
        body,
        signal,
        trailers: endToEnd,
        watch,
        maxHeaders: MAX_LINK_HEADERS,
      });
    } finally {
      if (sent !== undefined) waiting.delete(sent);
    }
  }

  /**
   * A killed node sends nothing, and a request on a reused stream may not be repeated. If no response arrives, this
   * opens another stream to find out whether the node is still reachable.
   */
  #checkReused(target: Target): void {
    const { waiting, open } = target;
    target.check = null;
    const now = this.#clock.monotonic();
    const silent = [...waiting].filter(([, at]) => now - at >= REUSED_SILENCE_MS).map(([request]) => request);
    // Each is checked once.
    for (const request of silent) waiting.set(request, Number.POSITIVE_INFINITY);
    if (silent.length > 0)
      open().then(
        (link) => link.destroy(),
        (error: unknown) => {
          if (!(error instanceof SvcError) || error.code !== 'connect_failed') return;
          for (const request of silent) if (waiting.has(request)) request.destroy(error);
        },
      );
    const next = waiting.values().find(Number.isFinite);
    if (next !== undefined)
      target.check = new SilenceWatch(this.#clock, next + REUSED_SILENCE_MS - now, () => this.#checkReused(target));
  }

  #target(local: Aid, remote: Aid, accessToken: string | undefined): Target {
    const token = accessToken === undefined ? '' : createHash('sha256').update(accessToken).digest('base64');
    const key = `${local} ${remote} ${token}`;
    const known = this.#targets.get(key);
    if (known !== undefined) return known;
    const slots = new Semaphore(MAX_CALLS_PER_TARGET);
    const open = (trace?: TracedRequest): Promise<LinkStream> => this.#open(local, remote, accessToken, trace);
    const agent = new LinkAgent(this.#clock, this.#spare, open, () => this.#prune(target));
    const counts = { switched: 0, eventStreams: 0, waiting: new Map(), check: null };
    const target: Target = { key, agent, slots, open, ...counts };
    this.#targets.set(key, target);
    return target;
  }

  async #open(
    local: Aid,
    remote: Aid,
    accessToken: string | undefined,
    trace: TracedRequest | undefined,
  ): Promise<LinkStream> {
    const { isUnasked = false } = this.#options;
    const traced = trace === undefined ? {} : { trace };
    const options = { timeoutMs: OPEN_TIMEOUT_MS, accessToken, bulk: true, isUnasked, ...traced };
    try {
      return await this.#links.open(local, remote, this.#options.purpose ?? 'http', options);
    } catch (error) {
      // This timeout covers reaching the node, not the call.
      if (error instanceof SvcError && error.code === 'timeout') throw new SvcError('connect_failed', { cause: error });
      throw error;
    }
  }

  /** Removes a target without calls and streams. */
  #prune(target: Target): void {
    if (target.agent.open > 0 || target.slots.busy > 0) return;
    target.check?.stop();
    // The last response may close after the last stream, when a later call has replaced the target.
    if (this.#targets.get(target.key) === target) this.#targets.delete(target.key);
  }
}

const ownCall = () => 'own' as const;

function traceReused(trace: TracedRequest, link: Duplex & Partial<Pick<LinkStream, 'path'>>): void {
  trace.path = link.path?.().kind ?? null;
  trace.next('wait');
}

/** True if the stream of a request was dead, and repeating the request is safe. */
function mayRepeat({ method, body, signal }: Call, error: unknown): boolean {
  // If the node turned out to be unreachable, a second attempt is pointless.
  const isDead =
    error instanceof ExchangeFailure && error.reused && !error.malformed && !(error.cause instanceof SvcError);
  const isRepeatable = IDEMPOTENT.has(method) && (body === null || body instanceof Uint8Array);
  return isDead && isRepeatable && signal?.aborted !== true;
}

/** Ends a traced request with its response. */
function traced(answer: CallResponse, request: TracedRequest): CallResponse {
  request.status = answer.status;
  const { body } = answer;
  request.next('body');
  body.on('end', () => request.finish());
  body.on('close', () => {
    if (request.end === null) request.finish(body.errored === null ? new SvcError('cancelled') : brokenResponse(body));
  });
  return answer;
}

const NO_WAIT: AskOptions = { note: '', waitS: 0 };

/** The description of a call for the owner. */
function askFor({ method, path: target, headers }: Call): Pick<AccessAsk, 'kind' | 'asked' | 'tool'> {
  const tool = (headerOf(headers, 'mcp-method') === 'tools/call' && headerOf(headers, 'mcp-name')) || '';
  return { kind: 'call', asked: askedCall(method, target), tool: isToolName(tool) ? tool : null };
}

/** True for the stream of an MCP session, and for its end. Clients send them automatically. */
function isSessionUpkeep({ method, headers }: Call): boolean {
  return (method === 'GET' || method === 'DELETE') && Boolean(headerOf(headers, 'mcp-session-id'));
}

/** The owner has allowed the call, but its body was already read. */
function repeatNow(cause: SvcError): SvcError {
  return new SvcError('access_pending', {
    message: 'The owner of the remote agent has allowed this caller. Repeat the request.',
    details: { retry_after_s: 1 },
    cause,
  });
}

/** The headers that delimit the body. */
function framing({ method, body, bodyLength }: Call): string[] {
  const length = body instanceof Uint8Array ? body.length : body === null ? 0 : bodyLength;
  if (length === undefined) return ['Transfer-Encoding', 'chunked'];
  return length > 0 || !BODILESS.has(method) ? ['Content-Length', `${length}`] : [];
}

function head(message: IncomingMessage) {
  return { statusText: reasonPhrase(message), headers: endToEnd(message.rawHeaders) };
}

function receivedOf(message: IncomingMessage): CallResponse {
  const error = errorFromResponse(message);
  if (error !== null) {
    message.destroy();
    throw error;
  }
  // The reader of the body gets its error. Without a reader, the error must not stop the process.
  message.on('error', () => {});
  const link: Duplex & Pick<LinkStream, 'release'> = message.socket;
  const release = (chunk: Buffer): void => link.release?.(chunk);
  return { ...head(message), status: message.statusCode ?? 0, body: message, release };
}

/** The error that the caller sees. */
function errorOf(error: unknown, signal: AbortSignal | undefined): SvcError {
  if (signal?.aborted === true)
    return signal.reason instanceof SvcError ? signal.reason : new SvcError('cancelled', { cause: error });
  if (error instanceof SvcError) return error;
  if (error instanceof ExchangeFailure) {
    if (error.cause instanceof SvcError) return error.cause;
    if (error.malformed)
      return new SvcError('protocol_error', {
        message: 'The remote node sent an invalid HTTP response.',
        cause: error,
      });
  }
  return new SvcError('connect_failed', {
    message: 'The connection to the remote node was lost before it responded.',
    cause: error,
  });
}

// Buffers short bodies of known length, so that a signature can cover them.

/** Longest body that is buffered before a signed call is sent, in bytes. */
export const MAX_SIGNED_BODY_BYTES: number = 256 * 1024;

/** True for a call with a stream whose known length in bytes is short enough to wait for. */
function isShort(call: Call): call is Call & { readonly body: Readable } {
  const { body, bodyLength = Number.POSITIVE_INFINITY } = call;
  return body instanceof Readable && bodyLength <= MAX_SIGNED_BODY_BYTES;
}

/**
 * Reads a stream to its end.
 * @throws SvcError `cancelled` if it breaks off
 */
async function wholeBody(body: Readable): Promise<Buffer> {
  try {
    return await buffer(body);
  } catch (cause) {
    throw new SvcError('cancelled', { message: 'The body of the call ended early.', cause });
  }
}
