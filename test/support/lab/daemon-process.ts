/**
 * Runs a real `svcd` on the lab machine of this process, and sends requests to its API, which is not reachable from
 * outside.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { detach } from '../../../src/foundation/detached.ts';
import { TestDaemon } from '../daemon.ts';
import { EchoService } from '../echo-service.ts';
import { dial, TcpServer } from '../tcp.ts';
import { Pump, reaches } from './pump.ts';

export type LabCommand =
  | {
      readonly do: 'start';
      readonly bootstrap: readonly string[];
      readonly config: string;
      readonly listen: string;
      readonly dataDir?: string;
      readonly env?: Readonly<Record<string, string>>;
    }
  /** The output of the daemon. */
  | { readonly do: 'output' }
  /** A new agent with a service at an address. Default: a service that echoes bytes, or requests. */
  | { readonly do: 'serve'; readonly service?: string; readonly echoes?: 'bytes' | 'requests' }
  | { readonly do: 'ask'; readonly method: string; readonly path: string; readonly body?: unknown }
  /** Connects to a local address and returns the response. */
  | { readonly do: 'echo'; readonly address: string; readonly text: string }
  /** Starts to send bytes to a local address endlessly, and to count echoed bytes. */
  | { readonly do: 'pump'; readonly address: string }
  /** Waits until newly sent bytes are echoed. Returns the number of connections so far. */
  | { readonly do: 'flows' }
  /** Waits until a new connection to a local address returns bytes. */
  | { readonly do: 'reaches'; readonly address: string }
  /** Stops or continues the process of the daemon, or ends it and waits for its exit. */
  | { readonly do: 'signal'; readonly signal: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGKILL' }
  /** Opens a connection to a local address and keeps it open. */
  | { readonly do: 'hold'; readonly address: string }
  /** Writes to that connection and returns the response. */
  | { readonly do: 'say'; readonly text: string }
  /** Sends bytes to a local address, and waits until all were echoed correctly. */
  | { readonly do: 'pour'; readonly address: string; readonly bytes: number };

export interface LabReply {
  /** Number of the command. */
  readonly id?: number;
  readonly status?: number;
  readonly body?: unknown;
  readonly text?: string;
  readonly pid?: number | undefined;
  readonly error?: string;
  readonly connections?: number;
  readonly disorder?: number;
}

let daemon: TestDaemon | null = null;
let pump: Pump | null = null;
let held: Socket | null = null;

async function echo(address: string, text: string): Promise<string> {
  const socket = await dial(address);
  socket.setEncoding('utf8').end(text);
  let back = '';
  socket.on('data', (chunk: string) => {
    back += chunk;
  });
  await once(socket, 'end');
  return back;
}

/** Reads the next bytes of a connection. */
async function read(socket: Socket, length: number): Promise<string> {
  let text = '';
  while (text.length < length) {
    const [chunk]: unknown[] = await once(socket, 'data');
    text += String(chunk);
  }
  return text;
}

/** Sends bytes and reads them back. */
async function pour(address: string, bytes: number): Promise<void> {
  const socket = await dial(address);
  const [sent, back] = [createHash('sha256'), createHash('sha256')];
  socket.on('data', (chunk: Buffer) => back.update(chunk));
  const ended = once(socket, 'end');
  for (let left = bytes; left > 0; ) {
    const chunk = randomBytes(Math.min(left, 64 * 1024));
    left -= chunk.length;
    sent.update(chunk);
    if (!socket.write(chunk)) await once(socket, 'drain');
  }
  socket.end();
  await ended;
  if (!sent.digest().equals(back.digest())) throw new Error('other bytes came back');
}

async function byteEcho(): Promise<string> {
  const { port } = await TcpServer.start((socket) => void socket.pipe(socket));
  return `127.0.0.1:${port}`;
}

async function webEcho(): Promise<string> {
  return (await EchoService.start()).address;
}

async function obey(command: LabCommand): Promise<LabReply> {
  if (command.do === 'echo') return { text: await echo(command.address, command.text) };
  if (command.do === 'pump') {
    pump = new Pump(command.address);
    return {};
  }
  if (command.do === 'flows') {
    await pump?.flows();
    return { connections: pump?.connections ?? 0, disorder: pump?.disorder ?? 0 };
  }
  if (command.do === 'reaches') {
    await reaches(command.address);
    return {};
  }
  if (command.do === 'hold') held = await dial(command.address);
  if (command.do === 'say') {
    if (held === null) throw new Error('no connection is held');
    const back = read(held, command.text.length);
    held.write(command.text);
    return { text: await back };
  }
  if (command.do === 'pour') await pour(command.address, command.bytes);
  if (command.do === 'hold' || command.do === 'pour') return {};
  if (command.do === 'start') {
    const { do: _, listen, ...options } = command;
    daemon = await TestDaemon.start({ ...options, args: ['--listen', listen] });
    return { pid: daemon.process.pid };
  }
  if (daemon === null) throw new Error('the daemon is not started');
  if (command.do === 'output') return { text: daemon.output };
  if (command.do === 'signal') {
    if (command.signal === 'SIGKILL' || command.signal === 'SIGTERM') await daemon.kill(command.signal);
    else daemon.process.kill(command.signal);
    return {};
  }
  if (command.do === 'ask') return await daemon.request(command.method, command.path, command.body);
  const service = command.service ?? (command.echoes === 'requests' ? await webEcho() : await byteEcho());
  return { text: await daemon.newAgent(service) };
}

process.on('message', ({ id, ...command }: LabCommand & { readonly id: number }) => {
  obey(command).then(
    (reply) => process.send?.({ id, ...reply }),
    (error: unknown) =>
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : 'unknown' }),
  );
});

async function leave(): Promise<never> {
  await daemon?.kill();
  await daemon?.stop();
  process.exit(0);
}

process.once('disconnect', () => detach(leave()));
