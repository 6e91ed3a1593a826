/** The port of a shared MCP server. Only the local daemon can use it, with a proof of the caller. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { agreesWithHeaders } from '../../capabilities/calls/tool-limit.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { isObject } from '../../foundation/json.ts';
import { usesTool } from '../../foundation/rpc-message.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { answerChallenge, KEEP_ALIVE_MS, provenCaller } from '../proven-caller.ts';
import type { Backend } from './backend.ts';
import { idOf, RPC, type RpcMessage, rpcError, rpcParamsOf, sendRejection } from './messages.ts';

// Which tools each caller of a shared server may use. A caller without a list may use all; the access list decides
// who may call at all.

/** AID → tool names. */
export type ToolLists = ReadonlyMap<string, ReadonlySet<string>>;

export class ToolRules {
  readonly #lists: ToolLists;

  constructor(lists: ToolLists) {
    this.#lists = lists;
  }

  /** True if responses to a caller must be filtered. */
  limits(caller: string): boolean {
    return this.#lists.has(caller);
  }

  /** The error response to a forbidden request; null if the request is allowed. */
  refusal(caller: string, message: RpcMessage, request: IncomingMessage): RpcMessage | null {
    const allowed = this.#lists.get(caller);
    if (allowed === undefined) return null;
    const { method } = message;
    const { name } = rpcParamsOf(message);
    // In another spelling, the method is an unknown one.
    const isAllowed = !usesTool(method) || (method === 'tools/call' && typeof name === 'string' && allowed.has(name));
    // A server may take the tool from the headers of a request.
    if (isAllowed && agreesWithHeaders(request, message)) return null;
    return rpcError(
      idOf(message) ?? null,
      RPC.invalidParams,
      'No tool with this name is available to you. See tools/list.',
    );
  }

  /** Filters a message of the server for a caller: a list of tools only has the allowed tools. */
  shown(caller: string, message: RpcMessage): RpcMessage {
    const allowed = this.#lists.get(caller);
    const { result } = message;
    if (allowed === undefined || !isObject(result) || !Array.isArray(result['tools'])) return message;
    const tools = result['tools'].filter(
      (tool) => isObject(tool) && typeof tool['name'] === 'string' && allowed.has(tool['name']),
    );
    return { ...message, result: { ...result, tools } };
  }
}

const HOST = '127.0.0.1';
/** Connections of the daemon, including streams. */
const MAX_GATE_CONNECTIONS = 1024;

export interface GateParts {
  /** The agent of the server, and the key for verifying caller proofs. */
  readonly agent: { readonly aid: string; readonly key: Uint8Array };
  readonly backend: Backend;
  readonly clock: Clock;
  /** Logs unexpected errors. */
  readonly log: (text: string) => void;
  /** Where to listen, and the port to which the agent is bound: svcd forwards it. Default: a free port. */
  readonly ports?: GatePorts | undefined;
}

export interface GatePorts {
  readonly own: number;
  readonly bound: number;
}

export class Gate {
  readonly #parts: GateParts;
  readonly #server: Server;

  private constructor(parts: GateParts) {
    this.#parts = parts;
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) =>
      detach(this.#serve(request, response)),
    );
    this.#server.maxConnections = MAX_GATE_CONNECTIONS;
  }

  /** Listens on a loopback port. */
  static async open(parts: GateParts): Promise<Gate> {
    const gate = new Gate(parts);
    gate.#server.listen(parts.ports?.own ?? 0, HOST);
    await listening(gate.#server);
    return gate;
  }

  /** `host:port` */
  get address(): string {
    const address = this.#server.address();
    return `${HOST}:${typeof address === 'object' && address !== null ? address.port : 0}`;
  }

  /** Destroys all connections and stops the server behind the port. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await Promise.all([closed, this.#parts.backend.close()]);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { agent, backend, clock, log, ports } = this.#parts;
    response.on('error', () => {});
    if (answerChallenge(request, response, agent.key, ports?.bound)) return;
    const caller = provenCaller(request, agent, unixSeconds(clock));
    if (caller === null) {
      response.setHeader('connection', 'close');
      return sendRejection(response, 403, RPC.invalidRequest, 'Only calls through svcd are accepted here.');
    }
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      await backend.serve({ request, response, caller, signal: gone.signal });
    } catch (error) {
      if (gone.signal.aborted) return;
      log(`a request failed: ${error instanceof Error ? error.message : 'unknown error'}\n`);
      if (response.headersSent) response.destroy();
      else sendRejection(response, 500, RPC.serverGone, 'The request failed unexpectedly.');
    }
  }
}
