/** The calling side: HTTP requests from a local agent to a remote one, over pooled link streams. */
import { createHash } from 'node:crypto';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Semaphore } from '../../foundation/semaphore.ts';
import { SilenceWatch } from '../../foundation/stall.ts';
import type { LinkStream, Links } from '../../network/links/types.ts';
import { errorOfAnswer } from './error-answer.ts';
import type { CallSigner } from './evidence/call-signer.ts';
import { type Body, ExchangeFailure, exchange, type HttpAnswer } from './exchange.ts';
import {
  endToEnd,
  filterHeaders,
  isEventStream,
  MAX_LINK_HEADERS,
  type RawHeaders,
  REMADE,
  reasonPhrase,
} from './headers.ts';
import { LinkAgent, SpareStreams } from './link-agent.ts';
import { BODILESS, IDEMPOTENT } from './methods.ts';
import { isOffered } from './upgrades.ts';
import { isShort, wholeBody } from './whole-body.ts';

/** Calls at once from one local agent to one remote agent; more wait for their turn. */
export const MAX_CALLS_PER_TARGET = 64;
/** Connections at once that switched protocols, counted apart: they may last for days. */
export const MAX_SWITCHED_PER_TARGET = 64;
/** Streams of events at once, counted apart as well: as many as the called side lets one node hold. */
export const MAX_EVENT_STREAMS_PER_TARGET = 1024;
/** Silence on a used stream after which it is asked whether its node still lives, milliseconds. */
export const USED_SILENCE_MS = 1_000;

/**
 * Time to reach the remote node, milliseconds: enough to notice that the pooled connection is dead
 * and to dial anew.
 */
const OPEN_TIMEOUT_MS = 30_000;
const NO_BODY = new Uint8Array(0);

export interface Call {
  /** In upper case; not CONNECT. */
  readonly method: string;
  /** Path and query, beginning with "/". */
  readonly path: string;
  /** Names and values in turn, as `IncomingMessage.rawHeaders`; those of the connection are left out. */
  readonly headers: RawHeaders;
  /** A stream is read at the pace of the other side, and stays its owner's. */
  readonly body: Body;
  /** Length of a body that is a stream; left out: not known. */
  readonly bodyLength?: number;
  readonly accessToken?: string | undefined;
  /** Gives the call up, also while its answer is being read. An SvcError as its reason is thrown as it is. */
  readonly signal?: AbortSignal | undefined;
}

/** The answer of the remote agent's service: its head, and its body as a stream that must be read or destroyed. */
export interface CallAnswer {
  readonly status: number;
  readonly statusText: string;
  /** End-to-end headers, names and values in turn. */
  readonly headers: RawHeaders;
  /** Breaks off with an error where the answer does. `rawTrailers` is filled at its end. */
  readonly body: IncomingMessage;
  /** As `LinkStream.release`, for chunks of the body. */
  readonly release: (chunk: Buffer) => void;
}

/** The service switched protocols: bytes go both ways until either side ends. */
export interface SwitchedCall {
  readonly status: 101;
  /** What it switched to. */
  readonly protocol: string;
  readonly statusText: string;
  readonly headers: RawHeaders;
  readonly socket: Duplex;
  /** What the service already sent. */
  readonly head: Buffer;
}

export interface HttpCallerDependencies {
  readonly links: Links;
  readonly clock: Clock;
  /** What the links are for: a service (`http`, where it is left out), the API of a node, or objects. */
  readonly purpose?: 'http' | 'admin' | 'object';
  /** Signs the calls of agents that give evidence; nobody's where it is left out. */
  readonly signer?: Pick<CallSigner, 'signs' | 'sign'>;
}

/** One caller, one called agent, one access token. */
interface Target {
  readonly key: string;
  readonly agent: LinkAgent;
  readonly slots: Semaphore;
  /** Opens a stream to it that the agent does not keep. */
  readonly open: () => Promise<LinkStream>;
  /** Connections that switched protocols. */
  switched: number;
  /** Answers under way that are streams of events. */
  eventStreams: number;
}

export class HttpCaller {
  readonly #deps: HttpCallerDependencies;
  readonly #targets = new Map<string, Target>();
  readonly #spare = new SpareStreams();

  constructor(dependencies: HttpCallerDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Calls a remote agent. An idempotent call without a streamed body is repeated once where a
   * pooled stream was found dead; nothing else ever is.
   * @throws SvcError `resolve_failed`, `connect_failed`, `access_denied`, `rate_limited`, `no_inbound`,
   *   `inbound_unreachable`, `timeout`, `protocol_error`, `cancelled`
   */
  async request(local: Aid, remote: Aid, call: Call): Promise<CallAnswer> {
    const answer = await this.#call(local, remote, call, framing(call));
    if ('socket' in answer) {
      answer.socket.destroy();
      throw new SvcError('protocol_error', { message: 'The service switched protocols without being asked to.' });
    }
    return answer;
  }

  /**
   * Asks the service to switch to one of these protocols; it may also answer plainly.
   * @throws SvcError as `request`
   */
  async upgrade(local: Aid, remote: Aid, call: Call, protocols: readonly string[]): Promise<CallAnswer | SwitchedCall> {
    const headers = ['Connection', 'Upgrade', 'Upgrade', protocols.join(', '), ...framing(call)];
    const answer = await this.#call(local, remote, call, headers);
    if (!('socket' in answer) || isOffered(answer.protocol, protocols)) return answer;
    answer.socket.destroy();
    throw new SvcError('protocol_error', { message: 'The service switched to a protocol that was not offered.' });
  }

  /** Ends all pooled streams; calls that run break off. */
  stop(): void {
    for (const { agent } of this.#targets.values()) agent.destroy();
    this.#targets.clear();
  }

  async #call(local: Aid, remote: Aid, call: Call, connectionHeaders: RawHeaders): Promise<CallAnswer | SwitchedCall> {
    const target = this.#target(local, remote, call.accessToken);
    let leave = (): void => {};
    try {
      const free = await target.slots.acquire(call.signal);
      leave = () => {
        free();
        this.#prune(target);
      };
      const sent = await this.#toSend(local, call);
      const headers = this.#headers(local, remote, sent);
      const answer = await this.#send(target, sent, () => ['Host', remote, ...headers(), ...connectionHeaders]);
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

  /** A call whose body a signature can cover, where that costs no more than a short wait. */
  async #toSend(caller: Aid, call: Call): Promise<Call> {
    const { body, bodyLength, ...rest } = call;
    const isSigned = this.#deps.signer?.signs(caller) === true;
    return isSigned && isShort(body, bodyLength) ? { ...rest, body: await wholeBody(body) } : call;
  }

  /** What goes with a call, made anew for each time that it is sent. */
  #headers(caller: Aid, called: Aid, { method, path: target, headers, body }: Call): () => readonly string[] {
    const kept = filterHeaders(endToEnd(headers), (name) => !REMADE.has(name));
    const { signer } = this.#deps;
    if (signer?.signs(caller) !== true) return () => kept;
    const known = body instanceof Uint8Array ? body : body === null ? NO_BODY : null;
    return () => signer.sign({ caller, called, method, target, headers: kept, body: known });
  }

  /** @throws SvcError `rate_limited` where there are too many already */
  #countSwitched(target: Target, socket: Duplex): void {
    if (target.switched >= MAX_SWITCHED_PER_TARGET) {
      socket.destroy();
      throw new SvcError('rate_limited', {
        message: `${MAX_SWITCHED_PER_TARGET} connections to this agent have switched protocols, such as WebSockets: close some first.`,
        details: { limit: MAX_SWITCHED_PER_TARGET },
      });
    }
    target.switched++;
    socket.once('close', () => {
      target.switched--;
      this.#prune(target);
    });
  }

  /** @throws SvcError `rate_limited` where there are too many already */
  #countEventStream(target: Target, message: IncomingMessage): void {
    if (target.eventStreams >= MAX_EVENT_STREAMS_PER_TARGET) {
      message.destroy();
      throw new SvcError('rate_limited', {
        message: `${MAX_EVENT_STREAMS_PER_TARGET} streams of events from this agent are open: close some first.`,
        details: { limit: MAX_EVENT_STREAMS_PER_TARGET },
      });
    }
    target.eventStreams++;
    message.once('close', () => target.eventStreams--);
  }

  async #send({ agent, open }: Target, call: Call, headers: () => string[]): Promise<HttpAnswer> {
    // protocol-calls.md, step 2
    const options: RequestOptions = { agent, method: call.method, path: call.path };
    const watch = (request: ClientRequest): void => this.#watchUsed(request, open);
    const { body, signal } = call;
    const parts = { options, body, signal, trailers: endToEnd, watch, maxHeaders: MAX_LINK_HEADERS };
    try {
      return await exchange({ ...parts, headers: headers() });
    } catch (error) {
      // Where the node was found gone, there is nobody to repeat it to.
      const gone = error instanceof ExchangeFailure && error.cause instanceof SvcError;
      const dead = error instanceof ExchangeFailure && error.reused && !error.malformed && !gone;
      const repeatable = IDEMPOTENT.has(call.method) && (call.body === null || call.body instanceof Uint8Array);
      if (!dead || !repeatable || call.signal?.aborted === true) throw error;
      agent.dropIdle();
      return await exchange({ ...parts, headers: headers() });
    }
  }

  /**
   * A killed node says nothing, and what was sent on a used stream may not be sent again: where no
   * answer comes, opening another stream finds out whether anybody is there.
   */
  #watchUsed(request: ClientRequest, open: () => Promise<LinkStream>): void {
    request.once('socket', () => {
      if (!request.reusedSocket) return;
      const silence = new SilenceWatch(this.#deps.clock, USED_SILENCE_MS, () => {
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
    const open = (): Promise<LinkStream> => this.#open(local, remote, accessToken);
    const agent = new LinkAgent({
      clock: this.#deps.clock,
      open,
      closed: () => this.#prune(target),
      spare: this.#spare,
    });
    const target: Target = { key, agent, slots, open, switched: 0, eventStreams: 0 };
    this.#targets.set(key, target);
    return target;
  }

  async #open(local: Aid, remote: Aid, accessToken: string | undefined): Promise<LinkStream> {
    const options = { timeoutMs: OPEN_TIMEOUT_MS, accessToken };
    try {
      return await this.#deps.links.open(local, remote, this.#deps.purpose ?? 'http', options);
    } catch (error) {
      // The time that ran out is that of the way there, not that of the call.
      if (error instanceof SvcError && error.code === 'timeout') throw new SvcError('connect_failed', { cause: error });
      throw error;
    }
  }

  /** Forgets a target that nobody calls and no stream leads to. */
  #prune({ key, agent, slots }: Target): void {
    if (agent.open === 0 && slots.busy === 0) this.#targets.delete(key);
  }
}

/** The headers that say how the body is delimited. */
function framing({ method, body, bodyLength }: Call): string[] {
  const length = body instanceof Uint8Array ? body.length : body === null ? 0 : bodyLength;
  if (length === undefined) return ['Transfer-Encoding', 'chunked'];
  return length > 0 || !BODILESS.has(method) ? ['Content-Length', `${length}`] : [];
}

function head(message: IncomingMessage) {
  return { statusText: reasonPhrase(message), headers: endToEnd(message.rawHeaders) };
}

function receivedOf(message: IncomingMessage): CallAnswer {
  const error = errorOfAnswer(message);
  if (error !== null) {
    message.destroy();
    throw error;
  }
  // Whoever reads the body hears of its error; without a reader it must not end the process.
  message.on('error', () => {});
  const link: Duplex & Pick<LinkStream, 'release'> = message.socket;
  const release = (chunk: Buffer): void => link.release?.(chunk);
  return { ...head(message), status: message.statusCode ?? 0, body: message, release };
}

/** What a failed call is to its caller. */
function errorOf(error: unknown, signal: AbortSignal | undefined): SvcError {
  if (signal?.aborted === true)
    return signal.reason instanceof SvcError ? signal.reason : new SvcError('cancelled', { cause: error });
  if (error instanceof SvcError) return error;
  if (error instanceof ExchangeFailure) {
    if (error.cause instanceof SvcError) return error.cause;
    if (error.malformed)
      return new SvcError('protocol_error', { message: 'The remote node answered with broken HTTP.', cause: error });
  }
  return new SvcError('connect_failed', {
    message: 'The connection to the remote node was lost before it answered.',
    cause: error,
  });
}
