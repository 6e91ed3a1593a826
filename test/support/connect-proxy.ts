/** An HTTP proxy with CONNECT only, in this process. */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { SELF_SIGNED } from './self-signed.ts';

interface ConnectProxyOptions {
  /** `user:password`. Default: none is required. */
  readonly credentials?: string;
  /** Status of the answers. Default: it connects. */
  readonly status?: number;
  /** More header fields of a 200, each with its line end. */
  readonly headers?: string;
  /** It never answers CONNECT. */
  readonly isSilent?: boolean;
  /** Value of `Proxy-Authenticate`. */
  readonly wants?: string;
  readonly isSecure?: boolean;
  /** Where names lead. Default: the resolver of the system. */
  readonly hosts?: Readonly<Record<string, string>>;
}

export class ConnectProxy implements AsyncDisposable {
  /** Targets of all requests, each with its status. */
  readonly requests: string[] = [];
  credentials: string | undefined;
  readonly #options: ConnectProxyOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(options: ConnectProxyOptions) {
    this.#options = options;
    this.credentials = options.credentials;
    this.#server = options.isSecure === true ? createHttpsServer(SELF_SIGNED) : createHttpServer();
    this.#server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.#connect(request, socket, head),
    );
  }

  static async start(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(options);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #connect({ url = '', headers }: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { status, wants = 'Basic realm="test"', hosts = {}, headers: more = '', isSilent = false } = this.#options;
    const expected = `Basic ${Buffer.from(this.credentials ?? '').toString('base64')}`;
    const isAllowed = this.credentials === undefined || headers['proxy-authorization'] === expected;
    const answer = isAllowed ? (status ?? 200) : 407;
    this.requests.push(`${url} ${answer}`);
    this.#sockets.add(socket.on('error', () => {}));
    if (isSilent) return;
    if (more !== '') return void socket.end(`HTTP/1.1 200 OK\r\n${more}\r\n<html>log in</html>`);
    if (answer !== 200) {
      const challenge = answer === 407 ? `Proxy-Authenticate: ${wants}\r\n` : '';
      socket.end(`HTTP/1.1 ${answer} No\r\n${challenge}Content-Length: 0\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${url}`);
    const out = connect({ host: hosts[hostname] ?? hostname, port: Number(port), noDelay: true }, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      out.write(head);
      out.pipe(socket);
      socket.pipe(out);
    });
    this.#sockets.add(out);
    out.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'));
    socket.once('close', () => out.destroy());
    out.once('close', () => socket.destroy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
