/** A web server on a port of this machine, which browsers find under every name below `test` too; it writes down who comes. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';

export class RecordedSite {
  readonly port: number;
  /** Method, path and query of each request. */
  readonly asked: string[] = [];
  /** Connections that were made, those without a request too. */
  connections = 0;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
    server.on('connection', () => this.connections++);
    server.on('request', ({ method, url }) => this.asked.push(`${method} ${url}`));
  }

  static async start(answer: RequestListener): Promise<RecordedSite> {
    const server = createServer(answer).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new RecordedSite(server, address.port);
  }

  /** The site under a name. */
  at(host: string): string {
    return `http://${host}:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}
