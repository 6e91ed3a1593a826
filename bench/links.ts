/** Links between two processes over the native engine, against plain TCP between two processes. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import type { LinkStream, Purpose } from '../src/network/links/types.ts';
import { forkNode, NativeNode } from '../test/support/link-process.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const MIB = 1024 * 1024;
const BULK_MIB = 200;
const CHUNK = Buffer.alloc(64 * 1024, 7);
const OPENS = 500;
const AT_ONCE = 20;
const LOOPBACK = '127.0.0.1';
const BULK_AIM = 0.2;
/** The task of a TCP connection, given by its first byte. */
const TCP = { echo: 1, swallow: 2, give: 3 } as const;

/** The TCP peer: the same three services as the agent of link-process.ts. */
function serveTcp(): void {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.once('data', (first: Buffer) => {
      socket.unshift(first.subarray(1));
      if (first[0] === TCP.echo) socket.pipe(socket);
      else if (first[0] === TCP.give) void pump(socket, BULK_MIB * MIB).then(() => socket.end());
      else socket.on('data', () => {}).on('end', () => socket.end('done'));
    });
  });
  server.listen(0, LOOPBACK, () => {
    const address = server.address();
    if (address !== null && typeof address === 'object') process.send?.(address.port);
  });
  process.once('disconnect', () => process.exit(0));
}

async function pump(to: Duplex, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes; sent += CHUNK.length) if (!to.write(CHUNK)) await once(to, 'drain');
}

async function drain(from: Duplex): Promise<void> {
  from.resume();
  await once(from, 'end');
}

async function echoOnce(stream: Duplex): Promise<void> {
  stream.write('x');
  await once(stream, 'data');
  stream.end();
}

/** MiB per second of `transfer`. */
async function rate(transfer: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await transfer();
  return (BULK_MIB * 1000) / (performance.now() - start);
}

async function times(count: number, work: () => Promise<void>): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await work();
    samples.push(performance.now() - start);
  }
  return samples;
}

async function perSecond(count: number, atOnce: number, work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await Promise.all(Array.from({ length: atOnce }, () => times(count / atOnce, work)));
  return (count * 1000) / (performance.now() - start);
}

function against(what: string, unit: string, value: number, yardstick: number, aim?: number): BenchRow {
  const ratio = value / yardstick;
  return { what, unit, value, yardstick, ratio, ...(aim === undefined ? {} : { aim: `≥ ${aim}`, ok: ratio >= aim }) };
}

export async function run(): Promise<BenchTable> {
  const here = new NativeNode(KeyPair.generate(), 0);
  await here.start();
  const there = await forkNode(KeyPair.generate());
  here.directory.set(there.location.aid, there.location);
  const tcpPeer = fork(import.meta.filename);
  const [port]: unknown[] = await once(tcpPeer, 'message');

  const open = (purpose: Purpose): Promise<LinkStream> => here.links.open(here.aid, there.location.aid, purpose);
  const dialTcp = async (service: number): Promise<Socket> => {
    const socket = connect({ port: Number(port), host: LOOPBACK, noDelay: true, allowHalfOpen: true });
    await once(socket, 'connect');
    socket.write(Uint8Array.of(service));
    return socket;
  };
  const echoLink = async (): Promise<void> => echoOnce(await open('tcp'));
  const echoTcp = async (): Promise<void> => echoOnce(await dialTcp(TCP.echo));
  const up = async (stream: Duplex): Promise<void> => {
    await pump(stream, BULK_MIB * MIB);
    stream.end();
    await drain(stream);
  };
  const down = async (stream: Duplex): Promise<void> => {
    await drain(stream);
    stream.end();
  };

  const cold = (await times(1, echoLink))[0] ?? 0;
  await times(OPENS / 2, echoLink);
  await times(OPENS / 2, echoTcp);
  const [links, sockets] = [await times(OPENS, echoLink), await times(OPENS, echoTcp)];
  const rows: BenchRow[] = [
    { what: 'first link to a node: dial, hello, proofs, 1 byte echoed', unit: 'ms', value: cold },
    against('open a warm link, 1 byte echoed, p50', 'ms', quantile(links, 0.5), quantile(sockets, 0.5)),
    against('open a warm link, 1 byte echoed, p99', 'ms', quantile(links, 0.99), quantile(sockets, 0.99)),
    against('new links, sequential', '/s', await perSecond(OPENS, 1, echoLink), await perSecond(OPENS, 1, echoTcp)),
    against(
      `new links, ${AT_ONCE} at a time`,
      '/s',
      await perSecond(2 * OPENS, AT_ONCE, echoLink),
      await perSecond(2 * OPENS, AT_ONCE, echoTcp),
    ),
  ];
  const linkUp = await rate(async () => up(await open('note')));
  rows.push(
    against('bulk up, one link', 'MiB/s', linkUp, await rate(async () => up(await dialTcp(TCP.swallow))), BULK_AIM),
  );
  const linkDown = await rate(async () => {
    const link = await open('object');
    link.write(Uint8Array.of(BULK_MIB));
    await down(link);
  });
  rows.push(
    against('bulk down, one link', 'MiB/s', linkDown, await rate(async () => down(await dialTcp(TCP.give))), BULK_AIM),
  );
  tcpPeer.disconnect();
  there.child.disconnect();
  await here.stop();
  return { title: 'Links between two processes (yardstick: plain TCP on loopback)', rows };
}

if (process.argv[1] === import.meta.filename && process.send !== undefined) serveTcp();
