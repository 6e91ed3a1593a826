/** The port of a shared MCP server. Only the local daemon can use it, with a proof of the caller. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { answerChallenge, KEEP_ALIVE_MS, provenCaller } from '../proven-caller.ts';
import type { Backend } from './backend.ts';
import { RPC } from './messages.ts';
import { sendRejection } from './rpc-response.ts';

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

  /** Listens on a free loopback port. */
  static async open(parts: GateParts): Promise<Gate> {
    const gate = new Gate(parts);
    gate.#server.listen(0, HOST);
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
    const { agent, backend, clock, log } = this.#parts;
    response.on('error', () => {});
    if (answerChallenge(request, response, agent.key)) return;
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
