/** TCP servers and clients of tests. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A server on 127.0.0.1 that passes every connection to `serve`. */
export class TcpServer {
  readonly port: number;
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(serve: (socket: Socket) => void): Promise<TcpServer> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const started = new TcpServer(server, address.port);
    server.on('connection', (socket) => {
      started.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => started.sockets.delete(socket));
      serve(socket);
    });
    return started;
  }

  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: this.port };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

/** A connected client of `host:port`. */
export async function dial(address: string): Promise<Socket> {
  const [host, port] = address.split(':');
  const socket = connect({ host: host ?? '', port: Number(port), allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

/** How a connection ended: cleanly, or with an error code such as ECONNRESET. */
export async function endOf(socket: Socket): Promise<string> {
  if (socket.destroyed) return 'closed';
  return new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    socket.once('end', () => resolve('end'));
    socket.resume();
  });
}
