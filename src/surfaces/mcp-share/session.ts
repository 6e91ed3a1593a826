/**
 * A session of the revisions before 2026-07-28: one client, one process of the wrapped server. Messages pass as they
 * are, in both directions; the transport of the SDK speaks HTTP, and this says on which of the client's streams a
 * message of the server belongs, which stdio does not say.
 */
import { randomUUID } from 'node:crypto';
import {
  type JSONRPCMessage,
  parseJSONRPCMessage,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { detach } from '../../foundation/detached.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';
import {
  fromCaller,
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
import { ReplayLog } from './replay-log.ts';
import { type ServerCommand, ServerProcess } from './server-process.ts';
import type { ToolRules } from './tool-rules.ts';

/** Of the server as a whole, and of no request. */
const UNRELATED = /^notifications\/(?:.+\/list_changed|resources\/updated)$/;

export const SERVER_GONE = 'The MCP server has ended. The next session starts it again.';

export interface SessionParts {
  readonly caller: string;
  readonly rules: ToolRules;
  /** Told once, when the session is over. */
  readonly onEnd: (session: Session) => void;
}

export class Session {
  readonly id: string = randomUUID();
  readonly #parts: SessionParts;
  readonly #http: WebStandardStreamableHTTPServerTransport;
  /** Requests of the client without an answer, the newest last, with their progress tokens. */
  readonly #waiting = new Map<RpcId, unknown>();
  #process: ServerProcess | null = null;
  #over = false;

  private constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#http = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => this.id,
      eventStore: new ReplayLog(),
      onsessionclosed: () => detach(this.end()),
      maxRequestBodySize: MAX_SHARED_MESSAGE_BYTES,
      // Streams are silent for as long as they like: svcd holds them for a day, and writes cost both sides.
      keepAliveMs: 0,
    });
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    this.#http.onmessage = (message) => this.#fromClient(message);
  }

  /** @throws what Node gives for a program that cannot be run */
  static async start(what: ServerCommand, parts: SessionParts): Promise<Session> {
    const session = new Session(parts);
    session.#process = await ServerProcess.start(what, parts.caller, {
      onMessage: (message) => session.#fromServer(message),
      onEnd: () => detach(session.#serverGone()),
    });
    await session.#http.start();
    return session;
  }

  get caller(): string {
    return this.#parts.caller;
  }

  /** Requests that wait for an answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** As of `ServerProcess`. */
  get read(): Promise<void> {
    return this.#process?.read ?? Promise.resolve();
  }

  /** Answers a request of the client. */
  serve(request: Request, parsedBody?: unknown): Promise<Response> {
    return this.#http.handleRequest(request, parsedBody === undefined ? {} : { parsedBody });
  }

  /** Ends the process and every stream. */
  async end(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#parts.onEnd(this);
    await this.#http.close();
    await this.#process?.end();
  }

  #fromClient(message: RpcMessage): void {
    const id = idOf(message);
    if (isRequest(message) && id !== undefined) this.#waiting.set(id, metaOf(message)['progressToken']);
    if (message['method'] === 'notifications/cancelled') {
      const { requestId } = rpcParamsOf(message);
      if (typeof requestId === 'string' || typeof requestId === 'number') this.#waiting.delete(requestId);
    }
    this.#process?.send(fromCaller(message, this.#parts.caller));
  }

  #fromServer(message: JSONRPCMessage): void {
    const shown = this.#parts.rules.shown(this.#parts.caller, message);
    if (isAnswer(shown)) {
      const id = idOf(shown);
      if (id !== undefined) this.#waiting.delete(id);
      return this.#send(shown);
    }
    this.#send(shown, this.#relatedTo(shown));
  }

  #relatedTo(message: RpcMessage): RpcId | undefined {
    const { method } = message;
    if (typeof method === 'string' && UNRELATED.test(method)) return undefined;
    if (method === 'notifications/progress') {
      const { progressToken } = rpcParamsOf(message);
      const of = [...this.#waiting].find(([, token]) => token !== undefined && token === progressToken);
      if (of !== undefined) return of[0];
    }
    return [...this.#waiting.keys()].at(-1);
  }

  #send(message: RpcMessage, relatedRequestId?: RpcId): void {
    const sent = this.#http.send(
      parseJSONRPCMessage(message),
      relatedRequestId === undefined ? {} : { relatedRequestId },
    );
    // An answer that nobody waits for any more, such as to a request that was cancelled.
    detach(sent.catch(() => {}));
  }

  async #serverGone(): Promise<void> {
    if (this.#over) return;
    const lost = [...this.#waiting.keys()];
    this.#waiting.clear();
    for (const id of lost) {
      const answer = parseJSONRPCMessage(rpcError(id, RPC.serverGone, SERVER_GONE));
      await this.#http.send(answer).catch(() => {});
    }
    await this.end();
  }
}
