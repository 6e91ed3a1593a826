/**
 * A local address of a remote agent (`svc origin open`) through two daemons: added latency of a small call and of the
 * first event of a stream, throughput compared with a tunnel, and the cost of idle streams. The yardstick is the
 * service itself, or a tunnel for transfers. `BENCH_ORIGINS=idle,latency,transfers` selects parts.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { ready } from '../test/support/network.ts';
import { cpuSeconds, residentBytes } from './support/process-usage.ts';
import { get, type HttpTransfer, put, speedOf } from './support/raw-http.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const WARM_UP = 200;
const SAMPLES = 2000;
const STREAM_SAMPLES = 300;
const HELD = 1000;
/** Opened and closed before the measurement, so that lazily loaded code does not count. */
const HELD_BEFORE = 128;
const OPENED_AT_ONCE = 32;
const SETTLE_MS = 5000;
const TRANSFER_BYTES = 100_000_000;
const TRANSFER_ROUNDS = 5;
/** Maximum added latency of a small call, milliseconds. */
const ADDED_AIM_MS = 3;
const TRANSFER_AIM = 0.8;
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'SendMessage',
  params: { message: { text: 'Guten Tag' } },
});

interface World {
  readonly near: TestDaemon;
  readonly far: TestDaemon;
  /** Ports of the service: itself, at the local address, and through a tunnel. */
  readonly direct: number;
  readonly origin: number;
  readonly tunnel: number;
}

const kept = new Agent({ keepAlive: true });

function ask(port: number, method: string, path: string, body = '', agent: Agent | false = false) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const headers = method === 'POST' ? { 'content-type': 'application/json' } : {};
    request({ host: '127.0.0.1', port, method, path, agent, headers }, resolve).on('error', reject).end(body);
  });
}

/** Milliseconds of one small call over a kept connection. */
async function called(port: number): Promise<number> {
  const started = performance.now();
  const answer = await ask(port, 'POST', '/', CALL, kept);
  answer.resume();
  await once(answer, 'end');
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
  return performance.now() - started;
}

/** Opens a stream of events and waits for the first one. */
async function eventsOf(port: number): Promise<IncomingMessage> {
  const stream = await ask(port, 'GET', '/events');
  if (stream.statusCode !== 200) throw new Error(`status ${stream.statusCode}`);
  stream.on('error', () => {});
  await once(stream, 'data');
  return stream;
}

/** Milliseconds to the first event, on a new connection. */
async function firstEvent(port: number): Promise<number> {
  const started = performance.now();
  const stream = await eventsOf(port);
  const took = performance.now() - started;
  stream.destroy();
  return took;
}

/** Measures both in alternation, so that other work affects both equally. */
async function measureAlternating(
  measure: (port: number) => Promise<number>,
  { direct, origin }: World,
  samples: number,
) {
  const times = { direct: [] as number[], origin: [] as number[] };
  for (let i = 0; i < WARM_UP; i++) for (const port of [direct, origin]) await measure(port);
  for (let i = 0; i < samples; i++) {
    times.direct.push(await measure(direct));
    times.origin.push(await measure(origin));
  }
  return times;
}

/** CPU time of both daemons so far, seconds. */
function cpuOf(near: TestDaemon, far: TestDaemon): () => number {
  return () => cpuSeconds(near.process.pid) + cpuSeconds(far.process.pid);
}

async function latency(world: World): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  const row = (what: string, q: number, { direct, origin }: Record<'direct' | 'origin', readonly number[]>): number => {
    const [value, yardstick] = [quantile(origin, q), quantile(direct, q)];
    rows.push({ what, value, unit: 'ms', yardstick, ratio: value / yardstick });
    return value - yardstick;
  };
  const used = cpuOf(world.near, world.far);
  const before = used();
  const calls = await measureAlternating(called, world, SAMPLES);
  const cpu = ((used() - before) * 1000) / (WARM_UP + SAMPLES);
  const added = row('small call, p50', 0.5, calls);
  const addedP95 = row('small call, p95', 0.95, calls);
  const aim = `≤ ${ADDED_AIM_MS} ms`;
  rows.push({ what: '  added, p50', value: added, unit: 'ms', aim, ok: added <= ADDED_AIM_MS });
  rows.push({ what: '  added, p95', value: addedP95, unit: 'ms' });
  rows.push({ what: '  CPU of both daemons', value: cpu, unit: 'ms' });
  const streams = await measureAlternating(firstEvent, world, STREAM_SAMPLES);
  row('first byte of a new stream of events, p50', 0.5, streams);
  row('first byte of a new stream of events, p95', 0.95, streams);
  return rows;
}

/** The best round of each path. Other work on the machine can only slow a round down. */
async function transfers({ near, far, origin, tunnel }: World): Promise<BenchRow[]> {
  const ways: readonly [string, HttpTransfer, string][] = [
    ['down, of a known length', get, '/bytes'],
    ['down, in chunks', get, '/chunks'],
    ['up', put, '/'],
  ];
  const used = cpuOf(near, far);
  const rows: BenchRow[] = [];
  for (const [name, transfer, path] of ways) {
    const best = { origin: 0, tunnel: 0 };
    const cpu = { origin: Number.POSITIVE_INFINITY, tunnel: Number.POSITIVE_INFINITY };
    for (let round = 0; round < TRANSFER_ROUNDS; round++)
      for (const [way, port] of [
        ['origin', origin],
        ['tunnel', tunnel],
      ] as const) {
        const before = used();
        best[way] = Math.max(best[way], await speedOf(transfer, port, path, TRANSFER_BYTES));
        cpu[way] = Math.min(cpu[way], used() - before);
      }
    const ratio = best.origin / best.tunnel;
    rows.push({
      what: `100 MB ${name}; yardstick: a tunnel`,
      value: best.origin,
      unit: 'MiB/s',
      yardstick: best.tunnel,
      ratio,
      aim: `≥ ${TRANSFER_AIM} ×`,
      ok: ratio >= TRANSFER_AIM,
    });
    const perGb = 1e9 / TRANSFER_BYTES;
    rows.push({
      what: '  CPU of both daemons',
      value: cpu.origin * perGb,
      unit: 's/GB',
      yardstick: cpu.tunnel * perGb,
    });
  }
  return rows;
}

/** Opens `count` streams in batches. */
async function hold(port: number, count: number): Promise<IncomingMessage[]> {
  const streams: IncomingMessage[] = [];
  let left = count;
  const opened = Array.from({ length: OPENED_AT_ONCE }, async () => {
    while (left-- > 0) streams.push(await eventsOf(port));
  });
  await Promise.all(opened);
  return streams;
}

async function idle(world: World): Promise<BenchRow[]> {
  const { near, far, origin } = world;
  for (let i = 0; i < WARM_UP; i++) await called(origin);
  for (const stream of await hold(origin, HELD_BEFORE)) stream.destroy();
  await delay(SETTLE_MS);
  const before = [near, far].map(({ process }) => residentBytes(process.pid));
  const streams = await hold(origin, HELD);
  await delay(SETTLE_MS);
  const alive = streams.filter((stream) => !stream.destroyed).length;
  const took = [near, far].map(({ process }, i) => (residentBytes(process.pid) - (before[i] ?? 0)) / HELD / 1000);
  const beside = await called(origin);
  for (const stream of streams) stream.destroy();
  await delay(SETTLE_MS);
  return [
    { what: 'idle streams of events held', value: alive, unit: '', aim: `${HELD}`, ok: alive === HELD },
    { what: '  memory of each, calling daemon', value: took[0] ?? 0, unit: 'KB' },
    { what: '  memory of each, called daemon', value: took[1] ?? 0, unit: 'KB' },
    { what: '  a small call meanwhile', value: beside, unit: 'ms' },
  ];
}

export async function run(): Promise<BenchTable> {
  const child = fork(new URL('support/origin-service.ts', import.meta.url));
  const [message]: unknown[] = await once(child, 'message');
  const direct = typeof message === 'object' && message !== null && 'port' in message ? Number(message.port) : 0;
  const env = { SVCD_LOG_LEVEL: 'error' };
  await using near = await TestDaemon.start({ env });
  await using far = await TestDaemon.start({ env, bootstrap: [near.dhtAddress] });
  await Promise.all([ready(near), ready(far)]);
  const aid = await far.newAgent(`127.0.0.1:${direct}`);
  await far.call('POST', `/agents/${aid}/publish`);
  await near.newAgent();
  const { url } = await near.call<{ url: string }>('POST', `/origins/${aid}`);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
  const world = { near, far, direct, origin: Number(new URL(url).port), tunnel: Number(listen.split(':')[1]) };
  // Memory first, while no daemon has been swollen by other work.
  const parts = { idle, latency, transfers };
  const selected = process.env['BENCH_ORIGINS']?.split(',');
  const rows: BenchRow[] = [];
  for (const [name, measure] of Object.entries(parts))
    if (selected?.includes(name) !== false) rows.push(...(await measure(world)));
  kept.destroy();
  child.disconnect();
  return { title: 'A local address of an agent, through two daemons; yardstick: the same service directly', rows };
}
