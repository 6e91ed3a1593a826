/** HTTP over a bare socket, at almost no cost for its process: one request on a new connection. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const MIB = 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, 0x62);

export type HttpTransfer = (port: number, path: string, bytes: number) => Promise<void>;

async function dial(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

function head(method: string, path: string, headers = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n`;
}

/** Counts the bytes of a response until its end. */
async function answered(socket: Socket, least: number): Promise<void> {
  let received = 0;
  let status = '';
  socket.on('data', (chunk: Buffer) => {
    if (received === 0) status = chunk.toString('latin1', 0, 12);
    received += chunk.length;
  });
  await once(socket, 'end');
  socket.destroy();
  if (status !== 'HTTP/1.1 200' || received < least) throw new Error(`${status}: ${received} of ${least} bytes came`);
}

/** Reads `bytes` bytes of a response, and its end. */
export async function get(port: number, path: string, bytes: number): Promise<void> {
  const socket = await dial(port);
  socket.write(head('GET', `${path}?${bytes}`));
  await answered(socket, bytes);
}

/** Sends a request body of `bytes` bytes and reads the response. */
export async function put(port: number, path: string, bytes: number): Promise<void> {
  const socket = await dial(port);
  const end = answered(socket, 1);
  socket.write(head('PUT', path, `Content-Length: ${bytes}\r\n`));
  for (let left = bytes; left > 0; left -= CHUNK.length)
    if (!socket.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK)) await once(socket, 'drain');
  await end;
}

/** MiB per second of one transfer. */
export async function speedOf(transfer: HttpTransfer, port: number, path: string, bytes: number): Promise<number> {
  const started = performance.now();
  await transfer(port, path, bytes);
  return (bytes / MIB) * (1000 / (performance.now() - started));
}
