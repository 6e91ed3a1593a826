/**
 * `svc mcp use --stdio`: an MCP host on stdin and stdout, a shared server at a local address of its agent. Messages pass
 * as they are, whatever the revision; this keeps the session, which the host knows nothing of, over restarts of what
 * is on the way.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import { type JSONRPCMessage, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { PROTOCOL_VERSION_META_KEY, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { isObject, memberOf, readJson } from '../../foundation/json.ts';
import { finishingInput, PendingRequests } from '../mcp/finish-input.ts';
import { LargeIntegers } from './exact-json.ts';
import { keepLargeIntegers } from './exact-lines.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';
import {
  idOf,
  isAnswer,
  isRequest,
  metaOf,
  RPC,
  type RpcId,
  type RpcMessage,
  rpcError,
  rpcParamsOf,
} from './messages.ts';
import { remoteFetch } from './remote-fetch.ts';

/** How often a broken stream is taken up again: until the host goes. */
const RESUME = {
  initialReconnectionDelay: 500,
  reconnectionDelayGrowFactor: 1.5,
  maxReconnectionDelay: 15_000,
  maxRetries: Number.MAX_SAFE_INTEGER,
} as const;

/** How long the end waits for the server to hear of it, milliseconds. */
const FAREWELL_MS = 2000;

export interface BridgeParts {
  readonly input: Readable;
  readonly output: Writable;
  /** Where the agent's server is now. */
  readonly address: () => Promise<URL>;
  readonly clock: Clock;
}

/** A request of the host without an answer. */
interface Waiting {
  readonly giveUp: AbortController;
  readonly isModern: boolean;
}

export class Bridge {
  /** Settles when the host has gone and its requests are answered. */
  readonly closed: Promise<void>;
  readonly #parts: BridgeParts;
  readonly #input: Duplex;
  readonly #host: StdioServerTransport;
  readonly #waiting = new Map<RpcId, Waiting>();
  readonly #large = new LargeIntegers();
  readonly #pending = new PendingRequests();
  readonly #over: () => void;
  #remote: StreamableHTTPClientTransport;
  /** How the host began its session, to begin it again where the server has lost it. */
  #initialize: RpcMessage | null = null;
  #turn: Promise<void> = Promise.resolve();
  #beginning: Promise<void> | null = null;
  /** Takes the answer to a beginning that the host has not asked for. */
  #onBegun: ((answer: RpcMessage) => void) | null = null;

  private constructor(parts: BridgeParts) {
    this.#parts = parts;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#over = resolve;
    this.#input = finishingInput(parts, this.#pending, parts.clock);
    this.#host = keepLargeIntegers(
      new StdioServerTransport(this.#input, parts.output, { maxBufferSize: MAX_SHARED_MESSAGE_BYTES }),
    );
    this.#remote = this.#newRemote();
  }

  static async start(parts: BridgeParts): Promise<Bridge> {
    const bridge = new Bridge(parts);
    const host = bridge.#host;
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    host.onmessage = (message) => {
      bridge.#pending.received(message);
      // What needs no answer has arrived before the next one leaves: on stdio they come in their order.
      bridge.#turn = bridge.#turn.then(() => bridge.#fromHost(message));
    };
    // oxlint-disable-next-line prefer-add-event-listener -- as above
    host.onclose = () => detach(bridge.#end());
    await bridge.#remote.start();
    await host.start();
    return bridge;
  }

  /** Ends it, whatever is pending. */
  async close(): Promise<void> {
    this.#input.destroy();
    await this.#host.close();
    await this.closed;
  }

  #newRemote(): StreamableHTTPClientTransport {
    const { address, clock } = this.#parts;
    const remote = new StreamableHTTPClientTransport(new URL('http://127.0.0.1'), {
      fetch: remoteFetch(address, clock, this.#large),
      reconnectionOptions: RESUME,
    });
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    remote.onmessage = (message) => this.#fromRemote(remote, this.#large.restored(message));
    return remote;
  }

  async #fromHost(message: JSONRPCMessage): Promise<void> {
    const method = memberOf(message, 'method');
    if (method === 'initialize') this.#initialize = message;
    if (method === 'notifications/cancelled' && this.#cancel(message)) return;
    const id = isRequest(message) ? idOf(message) : undefined;
    if (id === undefined) return this.#remote.send(message).catch(() => {});
    const waiting: Waiting = {
      giveUp: new AbortController(),
      isModern: metaOf(message)[PROTOCOL_VERSION_META_KEY] !== undefined,
    };
    this.#waiting.set(id, waiting);
    detach(this.#ask(message, id, waiting).catch((error: unknown) => this.#failed(id, waiting, error)));
  }

  async #ask(message: JSONRPCMessage, id: RpcId, waiting: Waiting): Promise<void> {
    const send = (): Promise<void> => {
      const remote = this.#remote;
      return remote.send(message, {
        requestSignal: waiting.giveUp.signal,
        onRequestStreamEnd: () =>
          this.#failed(id, waiting, new Error('The connection was lost before the answer came.')),
      });
    };
    const used = this.#remote;
    try {
      await send();
    } catch (error) {
      if (!this.#hasLostSession(error, used) || waiting.isModern || memberOf(message, 'method') === 'initialize')
        throw error;
      // It was not carried out: the server does not know the session any more.
      await this.#beginAgain(used);
      await send();
    }
  }

  #hasLostSession(error: unknown, used: StreamableHTTPClientTransport): boolean {
    return memberOf(error, 'data', 'status') === 404 && used.sessionId !== undefined && this.#initialize !== null;
  }

  /** A session in the place of the one that is lost; requests that find it lost at the same time share it. */
  #beginAgain(lost: StreamableHTTPClientTransport): Promise<void> {
    if (this.#remote !== lost) return this.#beginning ?? Promise.resolve();
    const begin = async (): Promise<void> => {
      await lost.close();
      await this.#remote.start();
      const { promise, resolve } = Promise.withResolvers<RpcMessage>();
      this.#onBegun = resolve;
      await this.#remote.send(parseJSONRPCMessage({ ...this.#initialize, id: 'svc-begin-again' }));
      const answer = await promise;
      if (answer['error'] !== undefined) throw new Error('The server has ended, and begins no session again.');
      await this.#remote.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    };
    this.#remote = this.#newRemote();
    this.#beginning = begin().finally(() => {
      this.#beginning = null;
      this.#onBegun = null;
    });
    return this.#beginning;
  }

  #fromRemote(remote: StreamableHTTPClientTransport, message: JSONRPCMessage): void {
    if (isAnswer(message)) {
      const version = memberOf(message, 'result', 'protocolVersion');
      const isBeginning = idOf(message) === 'svc-begin-again' && this.#onBegun !== null;
      if ((isBeginning || idOf(message) === this.#initialize?.['id']) && typeof version === 'string')
        remote.setProtocolVersion(version);
      if (isBeginning) return this.#onBegun?.(message);
      const id = idOf(message);
      if (id !== undefined) this.#waiting.delete(id);
    }
    this.#toHost(message);
  }

  /** In revisions without sessions the end of a stream says that its request is given up. True where that was done. */
  #cancel(message: RpcMessage): boolean {
    const { requestId } = rpcParamsOf(message);
    if (typeof requestId !== 'string' && typeof requestId !== 'number') return false;
    const waiting = this.#waiting.get(requestId);
    if (waiting?.isModern !== true) return false;
    this.#waiting.delete(requestId);
    waiting.giveUp.abort();
    return true;
  }

  #failed(id: RpcId, waiting: Waiting, error: unknown): void {
    if (this.#waiting.get(id) !== waiting) return;
    this.#waiting.delete(id);
    this.#toHost(answerFor(id, error));
  }

  #toHost(message: RpcMessage): void {
    // A host that is gone has ended stdin too.
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
    const timer = clock.after(FAREWELL_MS, late.resolve);
    const farewell = this.#turn.then(() => this.#remote.terminateSession()).catch(() => {});
    await Promise.race([farewell, late.promise]);
    timer.cancel();
    await this.#remote.close();
    this.#over();
  }
}

/** What a host is told of a failure: the error of the server where it is one, or what svcd says. */
function answerFor(id: RpcId, error: unknown): RpcMessage {
  const text = memberOf(error, 'data', 'text');
  const said = typeof text === 'string' ? readJson(text) : undefined;
  const own = memberOf(said, 'error');
  if (isObject(own) && typeof own['code'] === 'number') return { jsonrpc: '2.0', id, error: own };
  const why = memberOf(said, 'message');
  if (typeof own === 'string' && typeof why === 'string')
    return rpcError(id, RPC.serverGone, `${own}: ${why}`, { code: own });
  if (memberOf(error, 'data', 'status') === 401)
    return rpcError(
      id,
      RPC.serverGone,
      'The server asks for authorization: give its address to the client ("svc mcp use").',
    );
  return rpcError(id, RPC.serverGone, error instanceof Error ? error.message : 'The request failed.');
}
