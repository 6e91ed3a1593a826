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
  filterHeaders,
  headerOf,
  isEventStream,
  MAX_LINK_HEADERS,
  type RawHeaders,
  reasonPhrase,
  SET_PER_HOP,
} from './headers.ts';
import { LinkAgent, type LinkRequestOptions, SpareStreams } from './link-agent.ts';
import { BODILESS, IDEMPOTENT } from './methods.ts';
import { traceHop } from './trace-headers.ts';
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
  readonly signer?: Pick<CallSigner, 'signs' | 'sign'>;
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
}

export class HttpCaller {
  readonly #links: Links;
  readonly #clock: Clock;
  readonly #options: HttpCallerOptions;
  readonly #targets = new Map<string, Target>();
  readonly #spare = new SpareStreams();

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
    for (const { agent } of this.#targets.values()) agent.destroy();
    this.#targets.clear();
  }

  async #call(
    local: Aid,
    remote: Aid,
    untraced: Call,
    connectionHeaders: RawHeaders,
  ): Promise<CallResponse | SwitchedCall> {
    const { traces } = this.#options;
    if (traces === undefined) return await this.#permitted(local, remote, untraced, connectionHeaders);
    const origin = { side: 'caller', caller: local, called: remote, method: untraced.method } as const;
    const { request, headers } = traceHop(traces, untraced.headers, origin, ownCall);
    const call = { ...untraced, headers: headers(untraced.headers) };
    const begunAt = traces.now();
    try {
      if (request === null) return await this.#permitted(local, remote, call, connectionHeaders);
      return traced(await this.#permitted(local, remote, call, connectionHeaders, request), request);
    } catch (error) {
      if (request === null) traces.failed(origin, begunAt, error);
      else request.finish(error);
      throw error;
    }
  }

  async #permitted(
    local: Aid,
    remote: Aid,
    call: Call,
    connectionHeaders: RawHeaders,
    trace?: TracedRequest,
  ): Promise<CallResponse | SwitchedCall> {
    const { askOwner } = this.#options;
    const { accessToken, access = NO_WAIT, signal } = call;
    const mayAsk = askOwner !== undefined && access !== null && accessToken === undefined && !isSessionUpkeep(call);
    try {
      // A body that is read only once waits until the link is permitted.
      if (mayAsk && access.waitS > 0 && call.body instanceof Readable)
        (await this.#open(local, remote, accessToken, trace)).destroy();
      return await this.#exchange(local, remote, call, connectionHeaders, trace);
    } catch (error) {
      if (!mayAsk || !(error instanceof SvcError) || error.code !== 'access_denied') throw error;
      const ask = { ...askFor(call), ...access };
      await asStep(trace, 'ask', () => askOwner(local, remote, ask, signal));
      if (call.body instanceof Readable && (call.body.readableDidRead || access.waitS === 0)) throw repeatNow(error);
      return await this.#exchange(local, remote, call, connectionHeaders, trace);
    }
  }

  async #exchange(
    local: Aid,
    remote: Aid,
    call: Call,
    connectionHeaders: RawHeaders,
    trace?: TracedRequest,
  ): Promise<CallResponse | SwitchedCall> {
    const target = this.#target(local, remote, call.accessToken);
    let leave = (): void => {};
    try {
      const acquire = (): Promise<() => void> => target.slots.acquire(call.signal);
      const free = await (target.slots.busy < MAX_CALLS_PER_TARGET ? acquire() : asStep(trace, 'queue', acquire));
      leave = () => {
        free();
        this.#prune(target);
      };
      const sent = await this.#prepare(local, call);
      const headers = this.#headers(local, remote, sent);
      const lines = (): string[] => ['Host', remote, ...headers(), ...connectionHeaders];
      const answer = await this.#send(target, sent, lines, trace);
      const { message, switched } = answer;
      if (switched === null) {
        message.once('close', leave);
        const received = receivedOf(message);
        if (isEventStream(message.headers['content-type'])) {
          this.#countEventStream(target, message);
          leave();
        }
        return received;
      }
      this.#countSwitched(target, switched.socket);
      leave();
      return { ...head(message), status: 101, protocol: message.headers.upgrade ?? '', ...switched };
    } catch (error) {
      leave();
      throw errorOf(error, call.signal);
    }
  }

  /** Buffers the body of a call that will be signed, if it is short enough to wait for. */
  async #prepare(caller: Aid, call: Call): Promise<Call> {
    const { body, bodyLength, ...rest } = call;
    const isSigned = this.#options.signer?.signs(caller) === true;
    return isSigned && isShort(body, bodyLength) ? { ...rest, body: await wholeBody(body) } : call;
  }

  /** Headers of a call, created again for each attempt. */
  #headers(caller: Aid, called: Aid, { method, path: target, headers, body }: Call): () => readonly string[] {
    const kept = filterHeaders(endToEnd(headers), (name) => !SET_PER_HOP.has(name));
    const { signer } = this.#options;
    if (signer?.signs(caller) !== true) return () => kept;
    const known = body instanceof Uint8Array ? body : body === null ? NO_BODY : null;
    return () => signer.sign({ caller, called, method, target, headers: kept, body: known });
  }

  /** @throws SvcError `rate_limited` if there are too many already */
  #countSwitched(target: Target, socket: Duplex): void {
    if (target.switched >= MAX_SWITCHED_PER_TARGET) {
      socket.destroy();
      throw new SvcError('rate_limited', {
        message: `${MAX_SWITCHED_PER_TARGET} connections to this agent have switched protocols, such as WebSockets. Close some of them first.`,
        details: { limit: MAX_SWITCHED_PER_TARGET },
      });
    }
    target.switched++;
    socket.once('close', () => {
      target.switched--;
      this.#prune(target);
    });
  }

  /** @throws SvcError `rate_limited` if there are too many already */
  #countEventStream(target: Target, message: IncomingMessage): void {
    if (target.eventStreams >= MAX_EVENT_STREAMS_PER_TARGET) {
      message.destroy();
      throw new SvcError('rate_limited', {
        message: `${MAX_EVENT_STREAMS_PER_TARGET} event streams from this agent are open. Close some of them first.`,
        details: { limit: MAX_EVENT_STREAMS_PER_TARGET },
      });
    }
    target.eventStreams++;
    message.once('close', () => target.eventStreams--);
  }

  async #send(
    { agent, open }: Target,
    call: Call,
    headers: () => string[],
    trace: TracedRequest | undefined,
  ): Promise<HttpResponse> {
    // protocol-calls.md, step 2
    const options: LinkRequestOptions = { agent, method: call.method, path: call.path, ...(trace ? { trace } : {}) };
    const watch = (request: ClientRequest): void => {
      this.#checkReused(request, open);
      if (trace === undefined) return;
      request.on('socket', (link: Duplex & Partial<Pick<LinkStream, 'path'>>) => {
        // The agent traces a new link.
        if (!request.reusedSocket) return;
        trace.path = link.path?.().kind ?? null;
        trace.next('wait');
      });
    };
    const { body, signal } = call;
    const parts = { options, body, signal, trailers: endToEnd, watch, maxHeaders: MAX_LINK_HEADERS };
    try {
      return await exchange({ ...parts, headers: headers() });
    } catch (error) {
      // If the node turned out to be unreachable, a second attempt is pointless.
      const gone = error instanceof ExchangeFailure && error.cause instanceof SvcError;
      const dead = error instanceof ExchangeFailure && error.reused && !error.malformed && !gone;
      const repeatable = IDEMPOTENT.has(call.method) && (call.body === null || call.body instanceof Uint8Array);
      if (!dead || !repeatable || call.signal?.aborted === true) throw error;
      agent.dropIdle();
      return await exchange({ ...parts, headers: headers() });
    }
  }

  /**
   * A killed node sends nothing, and a request on a reused stream may not be repeated. If no response arrives, this
   * opens another stream to find out whether the node is still reachable.
   */
  #checkReused(request: ClientRequest, open: () => Promise<LinkStream>): void {
    request.once('socket', (link: Duplex & Pick<LinkStream, 'expectAnswer'>) => {
      if (!request.reusedSocket) return;
      link.expectAnswer?.();
      const silence = new SilenceWatch(this.#clock, REUSED_SILENCE_MS, () => {
        open().then(
          (link) => link.destroy(),
          (error: unknown) => {
            if (error instanceof SvcError && error.code === 'connect_failed' && !answered) request.destroy(error);
          },
        );
      });
      let answered = false;
      const stop = (): void => {
        answered = true;
        silence.stop();
      };
      request.once('response', stop).once('upgrade', stop).once('close', stop);
    });
  }

  #target(local: Aid, remote: Aid, accessToken: string | undefined): Target {
    const token = accessToken === undefined ? '' : createHash('sha256').update(accessToken).digest('base64');
    const key = `${local} ${remote} ${token}`;
    const known = this.#targets.get(key);
    if (known !== undefined) return known;
    const slots = new Semaphore(MAX_CALLS_PER_TARGET);
    const open = (trace?: TracedRequest): Promise<LinkStream> => this.#open(local, remote, accessToken, trace);
    const agent = new LinkAgent(this.#clock, this.#spare, open, () => this.#prune(target));
    const target: Target = { key, agent, slots, open, switched: 0, eventStreams: 0 };
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
  #prune({ key, agent, slots }: Target): void {
    if (agent.open === 0 && slots.busy === 0) this.#targets.delete(key);
  }
}

const ownCall = () => 'own' as const;

/** Ends a traced request with its response. */
function traced<A extends CallResponse | SwitchedCall>(answer: A, request: TracedRequest): A {
  request.status = answer.status;
  if (!('body' in answer)) {
    request.finish();
    return answer;
  }
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
  const tool = headerOf(headers, 'mcp-method') === 'tools/call' ? headerOf(headers, 'mcp-name') : '';
  return { kind: 'call', asked: askedCall(method, target), tool: isToolName(tool) ? tool : null };
}

/** True for the stream of an MCP session, and for its end. Clients send them automatically. */
function isSessionUpkeep({ method, headers }: Call): boolean {
  return (method === 'GET' || method === 'DELETE') && headerOf(headers, 'mcp-session-id') !== '';
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

/** True for a stream whose known length in bytes is short enough to wait for. */
function isShort(body: Body, length: number | undefined): body is Readable {
  return body instanceof Readable && length !== undefined && length <= MAX_SIGNED_BODY_BYTES;
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
