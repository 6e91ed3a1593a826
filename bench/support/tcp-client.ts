/** Clients of tcp-service.ts: one or many uploads or downloads, with their speed. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const MIB = 1024 * 1024;
const CHUNK = Buffer.alloc(64 * 1024, 0x62);

export interface Target {
  readonly host: string;
  readonly port: number;
}

export type Transfer = (target: Target, bytes: number) => Promise<void>;

export async function dial({ host, port }: Target): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
  await once(socket, 'connect');
  socket.on('error', () => {});
  return socket;
}

/** Sends `bytes` bytes and waits until the service has received all of them. */
export async function upload(target: Target, bytes: number): Promise<void> {
  const socket = await dial(target);
  socket.write('s');
  for (let left = bytes; left > 0; left -= CHUNK.length) if (!socket.write(CHUNK)) await once(socket, 'drain');
  socket.end();
  await once(socket, 'data');
  socket.destroy();
}

/** The request for `bytes` bytes. */
export function request(bytes: number): Buffer {
  const head = Buffer.alloc(9);
  head.write('g');
  head.writeBigUInt64BE(BigInt(bytes), 1);
  return head;
}

export async function download(target: Target, bytes: number): Promise<void> {
  const socket = await dial(target);
  let received = 0;
  socket.on('data', (chunk: Buffer) => (received += chunk.length));
  socket.end(request(bytes));
  await once(socket, 'end');
  if (received !== bytes) throw new Error(`${received} of ${bytes} bytes came`);
}

/** MiB per second of `streams` parallel transfers, `bytes` in total. */
export async function bulk(transfer: Transfer, target: Target, streams: number, bytes: number): Promise<number> {
  const started = performance.now();
  await Promise.all(Array.from({ length: streams }, () => transfer(target, bytes / streams)));
  return (bytes / MIB) * (1000 / (performance.now() - started));
}
