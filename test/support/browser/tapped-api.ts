/** The API of a daemon behind a separate port, where every request and its status are written down. */
import { connect } from 'node:net';
import { TcpServer } from '../tcp.ts';

export interface AskedRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Null as long as nothing was answered. */
  status: number | null;
  /** Answered, or closed without an answer, as a page does with requests that it leaves. */
  isOver: boolean;
}

/** A request head at the start of the received bytes: browsers wait for each response. */
const HEAD = /^([A-Z]+) (\S+) HTTP\/1\.1\r\n([\s\S]*?)\r\n\r\n/;

function requestOf(chunk: Buffer): AskedRequest | null {
  const [, method, path, lines] = HEAD.exec(chunk.toString('latin1')) ?? [];
  if (method === undefined || path === undefined || lines === undefined) return null;
  const headers = lines
    .split('\r\n')
    .map((line) => [/^[^:]*/.exec(line)?.[0].toLowerCase() ?? '', line.replace(/^[^:]*: ?/, '')] as const);
  return { method, path, headers: new Map(headers), status: null, isOver: false };
}

export class TappedApi {
  readonly url: string;
  readonly asked: AskedRequest[];
  readonly #server: TcpServer;

  private constructor(server: TcpServer, asked: AskedRequest[]) {
    this.#server = server;
    this.asked = asked;
    this.url = `http://127.0.0.1:${server.port}`;
  }

  /**
   * Bytes pass unchanged, both ways.
   * @param api the URL of the daemon's API
   * @param pages pages served instead, by path, as before the name pointed to the daemon
   */
  static async start(api: string, pages: Readonly<Record<string, string>> = {}): Promise<TappedApi> {
    const asked: AskedRequest[] = [];
    const { hostname, port } = new URL(api);
    const server = await TcpServer.start((socket) => {
      const upstream = connect(Number(port), hostname);
      const waiting: AskedRequest[] = [];
      upstream.on('error', () => socket.destroy());
      upstream.on('close', () => socket.end());
      socket.on('close', () => {
        upstream.destroy();
        for (const request of waiting) request.isOver = true;
      });
      socket.on('data', (chunk: Buffer) => {
        const request = requestOf(chunk);
        const page = pages[request?.path ?? ''];
        if (page !== undefined)
          return void socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n${page}`);
        if (request !== null) {
          asked.push(request);
          waiting.push(request);
        }
        upstream.write(chunk);
      });
      upstream.on('data', (chunk: Buffer) => {
        const status = /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1'))?.[1];
        const answered = status === undefined ? undefined : waiting.shift();
        if (answered !== undefined) Object.assign(answered, { status: Number(status), isOver: true });
        socket.write(chunk);
      });
    });
    return new TappedApi(server, asked);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }
}
