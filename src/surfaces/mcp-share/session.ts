/**
 * A session of the revisions before 2026-07-28: one client and one process of the wrapped server. Messages pass
 * unchanged in both directions. The transport of the SDK speaks HTTP. This class chooses the client's stream for each
 * message of the server, which stdio does not indicate.
 */
import { randomUUID } from 'node:crypto';
import {
  type EventStore,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { detach } from '../../foundation/detached.ts';
import { MAX_SHARED_MESSAGE_BYTES } from '../mcp/message-reader.ts';
import type { ToolRules } from './gate.ts';
import {
  fromCaller,
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
import { type ServerCommand, ServerProcess } from './server-process.ts';

// The last messages of a session, identified by the event IDs of Streamable HTTP. A client with a broken stream, for
// example after a daemon restart, receives the messages that it missed.

/** Stored messages per session. */
const MAX_EVENTS = 256;
/** Total characters of the stored messages as JSON. */
const MAX_EVENT_CHARS: number = 8 * 1024 * 1024;

interface Kept {
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly chars: number;
}

class ReplayLog implements EventStore {
  readonly #events = new Map<string, Kept>();
  #chars = 0;
  #last = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = String(++this.#last);
    const chars = JSON.stringify(message).length;
    this.#events.set(id, { streamId, message, chars });
    this.#chars += chars;
    for (const [oldest, { chars: freed }] of this.#events) {
      if (this.#events.size <= MAX_EVENTS && this.#chars <= MAX_EVENT_CHARS) break;
      // The newest message always stays, because a client waits for it.
      if (oldest === id) break;
      this.#events.delete(oldest);
      this.#chars -= freed;
    }
    return id;
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#events.get(eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const streamId = this.#events.get(lastEventId)?.streamId ?? '';
    // The first event of a stream is empty. It only carries an ID for resuming.
    for (const [id, kept] of this.#events)
      if (Number(id) > Number(lastEventId) && kept.streamId === streamId && 'jsonrpc' in kept.message)
        await send(id, kept.message);
    return streamId;
  }
}

/** Notifications about the server as a whole, not about a request. */
const UNRELATED = /^notifications\/(?:.+\/list_changed|resources\/updated)$/;

export const SERVER_STOPPED = 'The MCP server has stopped. A new session starts it again.';

export interface SessionParts {
  readonly caller: string;
  readonly rules: ToolRules;
  /** Called once when the session is closed. */
  readonly onEnd: (session: Session) => void;
}

export class Session {
  readonly id: string = randomUUID();
  readonly #parts: SessionParts;
  readonly #http: WebStandardStreamableHTTPServerTransport;
  /** Pending requests of the client with their progress tokens, newest last. */
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
      // No keep-alive messages, which would cost both sides. svcd keeps silent streams open for a day.
      keepAliveMs: 0,
    });
    // oxlint-disable-next-line prefer-add-event-listener -- a transport of the SDK is no EventTarget
    this.#http.onmessage = (message) => this.#fromClient(message);
  }

  /** @throws the error of Node for a program that cannot be run */
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

  /** Number of pending requests. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** See `ServerProcess`. */
  get read(): Promise<void> {
    return this.#process?.read ?? Promise.resolve();
  }

  /** Handles a request of the client. */
  serve(request: Request, parsedBody?: unknown): Promise<Response> {
    return this.#http.handleRequest(request, parsedBody === undefined ? {} : { parsedBody });
  }

  /** Stops the process and closes all streams. */
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
    if (isResponse(shown)) {
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
    // The response may be to a canceled request, for which no stream is left.
    detach(sent.catch(() => {}));
  }

  async #serverGone(): Promise<void> {
    if (this.#over) return;
    const lost = [...this.#waiting.keys()];
    this.#waiting.clear();
    for (const id of lost) {
      const answer = parseJSONRPCMessage(rpcError(id, RPC.serverGone, SERVER_STOPPED));
      await this.#http.send(answer).catch(() => {});
    }
    await this.end();
  }
}
