/** Plain sockets on a machine: echo services, and clients that report what a network does to them. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { Authority } from './certificates.ts';

/** After this time without an answer, an address counts as silent, milliseconds. */
const SILENCE_MS = 400;
/** Interval between datagrams of a flow, milliseconds. */
const FLOW_MS = 50;

export interface Place {
  readonly host: string;
  readonly port: number;
}

export type ProbeCommand =
  /** Echo services at ports. */
  | { readonly do: 'serve'; readonly udp: readonly number[]; readonly tcp: readonly number[]; readonly tls: number }
  /** Sends a datagram. Answers `echoed` or `silent`. */
  | ({ readonly do: 'udp'; readonly hex: string } & Place)
  /** Sends bytes over TCP, after a pause. Answers `echoed`, `silent`, or the code of an error. */
  | ({ readonly do: 'tcp'; readonly bytes: number; readonly pauseMs: number } & Place)
  /** Sends a text over TCP, also in TLS with any certificate. Answers the first line of the response, or `silent`. */
  | ({ readonly do: 'ask'; readonly text: string; readonly isTls: boolean } & Place)
  /**
   * Asks an HTTP proxy for a connection to an echo service. Answers its status, or `echoed`.
   * @param authority opens TLS inside, and requires a certificate of this authority
   */
  | ({ readonly do: 'proxy'; readonly to: string; readonly credentials: string; readonly authority: string } & Place)
  /** Sends datagrams for a time. Answers whether the first, the last, and one of a new socket were echoed. */
  | ({ readonly do: 'flow'; readonly ms: number } & Place);

export interface ProbeAnswer {
  /** Number of the command. */
  readonly id: number;
  readonly answer: string;
}

/** Resolves with `silent` after a time without an answer. */
async function orSilent(answer: Promise<string>): Promise<string> {
  return await Promise.race([answer, delay(SILENCE_MS, 'silent')]);
}

async function serve(udp: readonly number[], tcp: readonly number[], tls: number): Promise<string> {
  const echo = (socket: Duplex): void => void socket.on('error', () => {}).pipe(socket);
  for (const port of udp) {
    const socket = createSocket('udp6').bind(port);
    socket.on('message', (message, from) => socket.send(message, from.port, from.address));
    await once(socket, 'listening');
  }
  const servers = tcp.map((port) => createServer(echo).listen(port));
  servers.push(createTlsServer(new Authority('Unknown').issue('203.0.113.10'), echo).listen(tls));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  return 'ready';
}

async function exchange(socket: UdpSocket, message: Buffer, { host, port }: Place): Promise<string> {
  const answer = once(socket, 'message').then(() => 'echoed');
  socket.send(message, port, host, () => {});
  return await orSilent(answer);
}

async function udp(place: Place, message: Buffer): Promise<string> {
  const socket = createSocket(isIPv6(place.host) ? 'udp6' : 'udp4');
  // A network that is known to be unreachable.
  socket.on('error', () => {});
  const answer = await exchange(socket, message, place);
  socket.close();
  return answer;
}

/** Writes bytes and reads as many. */
async function echoes(socket: Duplex, bytes: Uint8Array): Promise<string> {
  let left = bytes.length;
  const done = Promise.withResolvers<string>();
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left === 0) done.resolve('echoed');
  });
  socket.once('error', (error: NodeJS.ErrnoException) => done.resolve(error.code ?? 'error'));
  socket.once('close', () => done.resolve('closed'));
  socket.write(bytes);
  return await orSilent(done.promise);
}

async function opened(place: Place): Promise<Socket | string> {
  const socket = connect({ ...place, noDelay: true });
  const failed = once(socket, 'error').then(([error]: NodeJS.ErrnoException[]) => error?.code ?? 'error');
  const outcome = await orSilent(Promise.race([once(socket, 'connect').then(() => ''), failed]));
  socket.on('error', () => {});
  if (outcome === '') return socket;
  socket.destroy();
  return outcome;
}

async function tcp(place: Place, bytes: number, pauseMs: number): Promise<string> {
  const socket = await opened(place);
  if (typeof socket === 'string') return socket;
  if (pauseMs > 0) await delay(pauseMs);
  const answer = await echoes(socket, Buffer.alloc(bytes));
  socket.destroy();
  return answer;
}

async function firstLine(socket: Duplex, text: string): Promise<string> {
  const answer = once(socket, 'data').then(([chunk]: unknown[]) => String(chunk).split('\r\n', 1)[0] ?? '');
  const failed = once(socket, 'error').then(([error]: NodeJS.ErrnoException[]) => error?.code ?? 'error');
  socket.write(text);
  return await orSilent(Promise.race([answer, failed]));
}

async function ask(place: Place, text: string, isTls: boolean): Promise<string> {
  const socket = await opened(place);
  if (typeof socket === 'string') return socket;
  const answer = await firstLine(isTls ? connectTls({ socket, rejectUnauthorized: false }) : socket, text);
  socket.destroy();
  return answer;
}

async function proxy(place: Place, to: string, credentials: string, authority: string): Promise<string> {
  const socket = await opened(place);
  if (typeof socket === 'string') return socket;
  const basic = `Proxy-Authorization: Basic ${Buffer.from(credentials).toString('base64')}\r\n`;
  const head = `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n${credentials === '' ? '' : basic}\r\n`;
  const [, status = 'silent'] = / (\d{3}) /.exec(await firstLine(socket, head)) ?? [];
  if (status !== '200') {
    socket.destroy();
    return status;
  }
  const inner = authority === '' ? socket : connectTls({ socket, ca: authority, host: to.replace(/:\d+$/, '') });
  const answer = await echoes(inner, Buffer.from('GET / HTTP/1.1\r\n\r\n'));
  socket.destroy();
  return answer;
}

async function flow(place: Place, ms: number): Promise<string> {
  const socket = createSocket('udp4');
  const first = await exchange(socket, Buffer.from('first'), place);
  for (let sent = 0; sent < ms; sent += FLOW_MS) {
    socket.send('again', place.port, place.host);
    await delay(FLOW_MS);
  }
  const last = await exchange(socket, Buffer.from('last'), place);
  socket.close();
  return `${first}, ${last}, ${await udp(place, Buffer.from('new'))}`;
}

async function obey(command: ProbeCommand): Promise<string> {
  if (command.do === 'serve') return await serve(command.udp, command.tcp, command.tls);
  if (command.do === 'udp') return await udp(command, Buffer.from(command.hex, 'hex'));
  if (command.do === 'tcp') return await tcp(command, command.bytes, command.pauseMs);
  if (command.do === 'ask') return await ask(command, command.text, command.isTls);
  if (command.do === 'flow') return await flow(command, command.ms);
  return await proxy(command, command.to, command.credentials, command.authority);
}

process.on('message', ({ id, ...command }: ProbeCommand & { readonly id: number }) => {
  obey(command).then(
    (answer) => process.send?.({ id, answer }),
    (error: unknown) => process.send?.({ id, answer: String(error) }),
  );
});
process.once('disconnect', () => process.exit(0));
