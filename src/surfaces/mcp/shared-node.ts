/**
 * Shares a node without an API with other MCP clients of the same user: MCP over HTTP on loopback, protected by the
 * token in daemon.json, which only the user can read.
 */

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { formatAddress } from '../../foundation/address.ts';
import type { SharedMcp } from '../../foundation/data-dir/daemon-info.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import type { StreamExchange } from '../../operations/handlers/exchange.ts';
import { DaemonProver, isProofRequest } from '../daemon-prover.ts';
import { RestContext } from '../rest/context.ts';
import { publicError, sendError, setSecurityHeaders } from '../rest/response.ts';
import { TokenCheck } from '../rest/token.ts';
import { createHttpHandler, type McpHttpDependencies, type McpHttpOptions } from './http.ts';

/** The MCP path, as at a daemon. */
export const SHARED_PATH = '/mcp/';
/** The response never ends while the node runs, so a client notices immediately when the node stops. */
export const WATCH_PATH = '/watch';
const HOST = '127.0.0.1';
const TOKEN_BYTES = 32;
/** Largest number of connections, watches included. */
const MAX_CONNECTIONS = 128;

export class SharedNode {
  readonly #server: Server;
  readonly #check: TokenCheck;
  readonly #prover: DaemonProver;
  readonly #token = randomBytes(TOKEN_BYTES).toString('base64url');
  readonly #handle: (exchange: StreamExchange) => Promise<void>;
  readonly #log: McpHttpDependencies['log'];

  constructor(options: McpHttpOptions, dependencies: McpHttpDependencies) {
    this.#handle = createHttpHandler(options, dependencies);
    this.#log = dependencies.log;
    this.#check = new TokenCheck(() => this.#token);
    this.#prover = new DaemonProver({ key: Buffer.from(this.#token, 'base64url') });
    this.#server = createServer({ requestTimeout: 0 }, (request, response) => detach(this.#serve(request, response)));
    this.#server.maxConnections = MAX_CONNECTIONS;
    // The server does not keep the process running. The MCP client does.
    this.#server.unref();
  }

  /** Listens on a free loopback port. @returns the entry for daemon.json */
  async start(): Promise<SharedMcp> {
    this.#server.listen(0, HOST);
    await listening(this.#server);
    this.#server.on('error', (error) =>
      this.#log.warn({ error: error.message }, 'the port for other MCP clients failed'),
    );
    const address = this.#server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return { addr: formatAddress({ host: HOST, port }), token: this.#token };
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isProofRequest(request)) return this.#prover.answer(request, response, () => {});
    setSecurityHeaders(response);
    try {
      if (this.#check.holderOf(request.headers.authorization) === null) throw new SvcError('unauthorized');
      const { pathname, searchParams } = new URL(request.url ?? '/', `http://${HOST}`);
      if (pathname === WATCH_PATH) {
        response.writeHead(200).flushHeaders();
        return;
      }
      if (pathname !== SHARED_PATH) throw new SvcError('not_found');
      const profile = searchParams.get('profile');
      const context = new RestContext({ origin: 'local', requireToken: () => {} }, response);
      await this.#handle({ request, response, input: profile === null ? {} : { profile }, context });
    } catch (error) {
      const shown = publicError(error, (err) => this.#log.error({ err }, 'a shared MCP request failed unexpectedly'));
      if (response.headersSent) response.destroy();
      else sendError(response, shown);
    }
  }
}
