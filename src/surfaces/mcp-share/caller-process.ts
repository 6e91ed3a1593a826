/**
 * The process of a wrapped server for one caller of the revisions since 2026-07-28, which have no sessions. Requests of
 * several clients share it, with IDs and progress tokens that the share assigns.
 */
import { type JSONRPCMessage, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import { isObject } from '../../foundation/json.ts';
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
  withMeta,
} from './messages.ts';
import { type ServerCommand, ServerProcess } from './server-process.ts';
import { SERVER_STOPPED } from './session.ts';

/** One request and the receiver of its messages. */
export interface Exchange {
  readonly request: RpcMessage;
  /** Receives the server's messages about the request. The response is the last. */
  readonly take: (message: RpcMessage) => void;
}

const LISTEN = 'subscriptions/listen';

/** The result of a subscription also carries its ID. */
function namedResult({ result }: RpcMessage, clientId: RpcId | null): RpcMessage {
  if (!isObject(result) || !isObject(result['_meta']) || result['_meta'][SUBSCRIPTION_ID_META_KEY] === undefined)
    return {};
  return { result: { ...result, _meta: { ...result['_meta'], [SUBSCRIPTION_ID_META_KEY]: clientId } } };
}

export class CallerProcess {
  readonly #exchanges = new Map<number, Exchange>();
  #process: ServerProcess | null = null;
  #lastId = 0;

  /**
   * @param onEnd called once when the process has exited
   * @throws the error of Node for a program that cannot be run
   */
  static async start(
    what: ServerCommand,
    caller: string,
    onEnd: (gone: CallerProcess) => void,
  ): Promise<CallerProcess> {
    const started = new CallerProcess();
    started.#process = await ServerProcess.start(what, caller, {
      onMessage: (message) => started.#fromServer(message),
      onEnd: () => {
        started.#gone();
        onEnd(started);
      },
    });
    return started;
  }

  /** Pending requests, subscriptions included. */
  get waiting(): number {
    return this.#exchanges.size;
  }

  /** See `ServerProcess`. */
  get read(): Promise<void> {
    return this.#process?.read ?? Promise.resolve();
  }

  /** Sends a request. The returned function cancels it. */
  ask({ request, take }: Exchange): () => void {
    const id = ++this.#lastId;
    const { progressToken } = metaOf(request);
    const hasToken = progressToken !== undefined;
    // Store the request without its arguments, which may be large.
    const { id: clientId, method } = request;
    const known = { id: clientId, method, ...(hasToken ? { params: { _meta: { progressToken } } } : {}) };
    this.#exchanges.set(id, { request: known, take });
    this.#process?.send({ ...(hasToken ? withMeta(request, { progressToken: id }) : request), id });
    return () => {
      if (!this.#exchanges.delete(id)) return;
      this.tell({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    };
  }

  tell(notification: RpcMessage): void {
    this.#process?.send(notification);
  }

  async end(): Promise<void> {
    await this.#process?.end();
  }

  #fromServer(message: JSONRPCMessage): void {
    const about = this.#about(message);
    if (about === undefined) return this.#refuse(message);
    const [id, exchange] = about;
    const clientId = idOf(exchange.request) ?? null;
    if (isResponse(message)) {
      this.#exchanges.delete(id);
      return exchange.take({ ...message, ...namedResult(message, clientId), id: clientId });
    }
    if (isRequest(message)) return this.#refuse(message);
    exchange.take(this.#named(message, exchange));
  }

  /** The exchange of a message. */
  #about(message: RpcMessage): [number, Exchange] | undefined {
    const find = (id: unknown): [number, Exchange] | undefined => {
      const exchange = this.#exchanges.get(Number(id));
      return exchange === undefined ? undefined : [Number(id), exchange];
    };
    if (isResponse(message)) return find(idOf(message));
    const subscription = metaOf(message)[SUBSCRIPTION_ID_META_KEY];
    if (subscription !== undefined) return find(subscription);
    if (message['method'] === 'notifications/progress') return find(rpcParamsOf(message)['progressToken']);
    if (message['method'] === 'notifications/cancelled') return find(rpcParamsOf(message)['requestId']);
    // A message without a reference to a request, such as a log line, goes to the newest request.
    return [...this.#exchanges].findLast(([, { request }]) => request['method'] !== LISTEN);
  }

  /** Restores the client's ID and progress token. */
  #named(message: RpcMessage, { request }: Exchange): RpcMessage {
    const clientId: RpcId | null = idOf(request) ?? null;
    const params = rpcParamsOf(message);
    if (message['method'] === 'notifications/progress')
      return { ...message, params: { ...params, progressToken: metaOf(request)['progressToken'] } };
    const own =
      message['method'] === 'notifications/cancelled'
        ? { ...message, params: { ...params, requestId: clientId } }
        : message;
    return metaOf(own)[SUBSCRIPTION_ID_META_KEY] === undefined
      ? own
      : withMeta(own, { [SUBSCRIPTION_ID_META_KEY]: clientId });
  }

  /** In these revisions a server sends no requests. It responds that it needs input. */
  #refuse(message: RpcMessage): void {
    const id = idOf(message);
    if (isRequest(message) && id !== undefined)
      this.tell(rpcError(id, RPC.unknownMethod, 'Servers make no requests in this revision.'));
  }

  #gone(): void {
    const lost = [...this.#exchanges.values()];
    this.#exchanges.clear();
    for (const { request, take } of lost) take(rpcError(idOf(request) ?? null, RPC.serverGone, SERVER_STOPPED));
  }
}
