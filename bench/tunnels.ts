/** Tunnels between two daemons, against a direct connection to the same service over loopback TCP. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { cpuSeconds, residentBytes } from './support/process-usage.ts';
import { bulk, dial, download, request, upload } from './support/tcp-client.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const MIB = 1024 * 1024;
const BULK_BYTES = 256 * MIB;
const BULK_ROUNDS = 5;
const STOPPED_READERS = 36;
const ROUND_TRIPS = 2000;
const NEW_CONNECTIONS = 400;
const HELD = 5000;
const HELD_PER_SECOND = 500;
const QUEUED_BYTES = 1024 * MIB;
const HOST = '127.0.0.1';

interface World {
  readonly near: TestDaemon;
  readonly far: TestDaemon;
  /** Ports of the service: itself, and through the tunnel. */
  readonly direct: number;
  readonly tunnel: number;
}

async function pingPong(port: number): Promise<number[]> {
  const socket = await dial({ host: HOST, port: port });
  socket.write('e');
  await once(socket, 'data');
  const times: number[] = [];
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const started = performance.now();
    socket.write('x');
    await once(socket, 'data');
    times.push(performance.now() - started);
  }
  socket.destroy();
  return times;
}

async function connecting(port: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < NEW_CONNECTIONS; i++) {
    const started = performance.now();
    const socket = await dial({ host: HOST, port: port });
    socket.write('e');
    await once(socket, 'data');
    times.push(performance.now() - started);
    socket.destroy();
  }
  return times;
}

function residentMib(daemon: TestDaemon): number {
  return residentBytes(daemon.process.pid) / MIB;
}

/** Opens `HELD` connections at a steady rate; how many echo, and the seconds it took. */
async function hold(port: number): Promise<{ alive: number; seconds: number; close: () => void }> {
  const started = performance.now();
  const sockets: Socket[] = [];
  const answers: Promise<boolean>[] = [];
  for (let i = 0; i < HELD; i++) {
    const due = started + (i * 1000) / HELD_PER_SECOND;
    if (performance.now() < due) await delay(due - performance.now());
    const socket = connect({ host: HOST, port, noDelay: true });
    socket.on('error', () => {});
    socket.on('connect', () => socket.write('e'));
    answers.push(
      new Promise((resolve) => {
        socket.once('data', () => resolve(true));
        socket.once('close', () => resolve(false));
      }),
    );
    sockets.push(socket);
  }
  const alive = (await Promise.all(answers)).filter(Boolean).length;
  const seconds = (performance.now() - started) / 1000;
  return { alive, seconds, close: () => sockets.forEach((s) => void s.destroy()) };
}

/** Memory growth of each daemon since a moment. */
function growth({ near, far }: World, what: string, before: readonly number[], aim?: number): BenchRow[] {
  return [near, far].map((daemon, i) => {
    const value = residentMib(daemon) - (before[i] ?? 0);
    const row = { what: `${what}, ${i === 0 ? 'calling' : 'called'} daemon`, value, unit: 'MiB' };
    return aim === undefined ? row : { ...row, aim: `≤ ${aim} MiB`, ok: value <= aim };
  });
}

/** A client that requests much and pauses reading. */
async function slowReader(world: World): Promise<BenchRow[]> {
  const before = [residentMib(world.near), residentMib(world.far)];
  const slow = await dial({ host: HOST, port: world.tunnel });
  slow.end(request(QUEUED_BYTES));
  slow.pause();
  await delay(3000);
  const rows = growth(world, 'memory behind a stopped reader', before, 32);
  let received = 0;
  slow.on('data', (chunk: Buffer) => (received += chunk.length));
  slow.resume();
  await once(slow, 'end');
  rows.push({
    what: 'bytes that the reader received',
    value: received / MIB,
    unit: 'MiB',
    aim: `${QUEUED_BYTES / MIB}`,
    ok: received === QUEUED_BYTES,
  });
  return rows;
}

/** Dozens of slow readers and one client that wants a response. */
async function stoppedReaders(world: World): Promise<BenchRow[]> {
  const before = [residentMib(world.near), residentMib(world.far)];
  const stopped = await Promise.all(
    Array.from({ length: STOPPED_READERS }, () => dial({ host: HOST, port: world.tunnel })),
  );
  for (const client of stopped) {
    client.pause();
    client.end(request(QUEUED_BYTES));
  }
  await delay(3000);
  const rows = growth(world, `memory behind ${STOPPED_READERS} stopped readers`, before);
  const speed = await bulk(download, { host: HOST, port: world.tunnel }, 1, BULK_BYTES);
  rows.push({ what: '  bulk down meanwhile', value: speed, unit: 'MiB/s', aim: 'not blocked', ok: speed > 1 });
  for (const client of stopped) client.destroy();
  await delay(1000);
  return rows;
}

async function held(world: World): Promise<BenchRow[]> {
  const before = [residentMib(world.near), residentMib(world.far)];
  const { alive, seconds, close } = await hold(world.tunnel);
  const rows = [
    {
      what: `connections held, opened ${HELD_PER_SECOND} a second`,
      value: alive,
      unit: '',
      aim: `${HELD}`,
      ok: alive === HELD,
    },
    { what: 'seconds until all have answered', value: seconds, unit: 's' },
    ...growth(world, 'memory for them', before),
  ];
  close();
  await delay(2000);
  return rows;
}

async function latency({ direct, tunnel }: World): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  const plain = await pingPong(direct);
  const tunnelled = await pingPong(tunnel);
  for (const [p, aim] of [
    [0.5, 0.3],
    [0.99, 2],
  ] as const) {
    const yardstick = quantile(plain, p);
    const value = quantile(tunnelled, p);
    rows.push({
      what: `1-byte round trip, p${p * 100}`,
      value,
      unit: 'ms',
      yardstick,
      ratio: value / yardstick,
      aim: `≤ ${aim} ms more`,
      ok: value - yardstick <= aim,
    });
  }
  const fresh = quantile(await connecting(tunnel), 0.5);
  const freshPlain = quantile(await connecting(direct), 0.5);
  rows.push({
    what: 'new connection to the first byte back, p50',
    value: fresh,
    unit: 'ms',
    yardstick: freshPlain,
    ratio: fresh / freshPlain,
    aim: '≤ 2 ms',
    ok: fresh <= 2,
  });
  return rows;
}

async function throughput({ near, far, direct, tunnel }: World): Promise<BenchRow[]> {
  const used = (): number => cpuSeconds(near.process.pid) + cpuSeconds(far.process.pid);
  const rows: BenchRow[] = [];
  for (const [name, transfer] of [
    ['up', upload],
    ['down', download],
  ] as const) {
    for (const [streams, aim] of [
      [1, 0.2],
      [8, 0.25],
    ] as const) {
      await bulk(transfer, { host: HOST, port: tunnel }, streams, BULK_BYTES);
      // The best round. Other work on the machine can only slow a round down.
      let [value, yardstick, cpu] = [0, 0, Number.POSITIVE_INFINITY];
      for (let round = 0; round < BULK_ROUNDS; round++) {
        const before = used();
        value = Math.max(value, await bulk(transfer, { host: HOST, port: tunnel }, streams, BULK_BYTES));
        cpu = Math.min(cpu, used() - before);
        yardstick = Math.max(yardstick, await bulk(transfer, { host: HOST, port: direct }, streams, BULK_BYTES));
      }
      rows.push({
        what: `bulk ${name}, ${streams} connection${streams > 1 ? 's' : ''}`,
        value,
        unit: 'MiB/s',
        yardstick,
        ratio: value / yardstick,
        aim: `≥ ${aim} ×`,
        ok: value >= aim * yardstick,
      });
      rows.push({ what: '  CPU of both daemons', value: (cpu * 1e9) / BULK_BYTES, unit: 's/GB' });
    }
  }
  return rows;
}

export async function run(): Promise<BenchTable> {
  const child = fork(new URL('support/tcp-service.ts', import.meta.url));
  const [{ port: direct }] = (await once(child, 'message')) as [{ port: number }];
  const env = { SVCD_LOG_LEVEL: 'error' };
  await using near = await TestDaemon.start({ env });
  await using far = await TestDaemon.start({ env, bootstrap: [near.dhtAddress] });
  await Promise.all([ready(near), ready(far)]);
  const aid = await far.newAgent(`127.0.0.1:${direct}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
  const world = { near, far, direct, tunnel: Number(listen.split(':')[1]) };
  // Memory first, while no daemon has been swollen by other work.
  const rows = [
    ...(await slowReader(world)),
    ...(await held(world)),
    ...(await stoppedReaders(world)),
    ...(await latency(world)),
    ...(await throughput(world)),
  ];
  child.disconnect();
  return { title: 'Tunnels between two daemons; yardstick: the same service directly over loopback TCP', rows };
}
