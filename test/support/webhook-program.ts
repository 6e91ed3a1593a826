import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { quietPort } from './programs.ts';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A program with a webhook that can stop and restart on the same port. */
export class WebhookProgram {
  readonly received: Received[] = [];
  status = 200;
  /** Target of redirects. */
  location: string | null = null;
  port = 0;
  #server: Server | null = null;

  async come(): Promise<void> {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += String(chunk);
      });
      request.on('end', () => {
        this.received.push({ path: request.url ?? '', headers: request.headers, body });
        response.writeHead(this.status, this.location === null ? {} : { location: this.location }).end();
      });
    });
    // A port that no other program gets while this one is stopped.
    if (this.port === 0) this.port = await quietPort();
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
  }

  async go(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  at(path: string): Received[] {
    return this.received.filter((one) => one.path === path);
  }

  /** Texts of the statuses received at a path. */
  texts(path: string): string[] {
    return this.at(path)
      .map(({ body }) => /"text":"([^"]*)"/.exec(body)?.[1])
      .filter((text) => text !== undefined)
      .filter((text) => text !== 'begin');
  }
}
