/** QUIC between two processes on loopback, compared with plain TCP and with 4 KiB reads in the same run. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import { silentLog } from '../src/foundation/log.ts';
import { loadEngine, type QuicEngine } from '../src/network/transport/quic/engine.ts';
import { NativeQuicEndpoint } from '../src/network/transport/quic/native-endpoint.ts';
import type { Connection } from '../src/network/transport/types.ts';
import { type Hello, type Usage, usage } from './support/quic-child.ts';
import { withSmallReads } from './support/small-reads.ts';
import { begin, count, pump, Task } from './support/transfer.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const ROUNDS = 5;
const TRANSFER_MIB = 128;
const STOCK_TRANSFER_MIB = 32;
const HELD_BACK_MIB = 256;
const PINGS = 3_000;
const DIALS = 60;
const STREAMS_ONE_BY_ONE = 500;
const STREAMS_AT_ONCE = 1_500;
const STREAM_LANES = 20;

type Open = () => Promise<Duplex>;
type Direction = 'up' | 'down';

/** Throughput in MB/s, and CPU seconds of the receiver and the sender per GB. */
interface Transfer {
  readonly speed: number;
  readonly cpuHere: number;
  readonly cpuThere: number;
}

class Other {
  readonly #child: ChildProcess;
  constructor(child: ChildProcess) {
    this.#child = child;
  }
  async usage(): Promise<Usage> {
    this.#child.send('usage');
    const [answer]: Usage[] = await once(this.#child, 'message');
    if (answer === undefined) throw new Error('no answer');
    return answer;
  }
}

async function transfer(open: Open, direction: Direction, mebibytes: number, other: Other): Promise<Transfer> {
  const before = { here: usage(), there: await other.usage() };
  const stream = await open();
  const from = performance.now();
  if (direction === 'up') {
    begin(stream, Task.sink);
    await Promise.all([pump(stream, mebibytes * 2 ** 20), count(stream)]);
  } else {
    begin(stream, Task.source, mebibytes);
    stream.end();
    await count(stream);
  }
  const seconds = (performance.now() - from) / 1000;
  const gigabytes = (mebibytes * 2 ** 20) / 1e9;
  const after = { here: usage(), there: await other.usage() };
  return {
    speed: (gigabytes * 1000) / seconds,
    cpuHere: (after.here.cpuSeconds - before.here.cpuSeconds) / gigabytes,
    cpuThere: (after.there.cpuSeconds - before.there.cpuSeconds) / gigabytes,
  };
}

async function pings(open: Open): Promise<readonly number[]> {
  const stream = await open();
  begin(stream, Task.echo);
  const message = Buffer.alloc(64, 1);
  const samples: number[] = [];
  for (let i = -PINGS / 10; i < PINGS; i++) {
    const from = performance.now();
    stream.write(message);
    for (let got = 0; got < message.length; ) {
      const [chunk]: Buffer[] = await once(stream, 'data');
      got += chunk?.length ?? 0;
    }
    if (i >= 0) samples.push(performance.now() - from);
  }
  stream.destroy();
  return samples;
}

/** Short requests per second, each on a new stream. */
async function streamRate(connection: Connection, total: number, lanes: number): Promise<number> {
  const from = performance.now();
  const lane = async (): Promise<void> => {
    for (let i = 0; i < total / lanes; i++) {
      const stream = await connection.openStream();
      begin(stream, Task.sink);
      stream.end();
      await count(stream);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return total / ((performance.now() - from) / 1000);
}

async function dials(dial: () => Promise<Connection>): Promise<readonly number[]> {
  const samples: number[] = [];
  for (let i = 0; i < DIALS; i++) {
    const from = performance.now();
    const connection = await dial();
    samples.push(performance.now() - from);
    connection.close();
  }
  return samples;
}

/** Memory growth of each process, in MB, if one writes and the other never reads. */
async function measureBackpressure(open: Open, other: Other): Promise<{ here: number; there: number }> {
  const before = { here: usage(), there: await other.usage() };
  const stream = await open();
  begin(stream, Task.hold);
  await sleep(100);
  void pump(stream, HELD_BACK_MIB * 2 ** 20).catch(() => {});
  let peakHere = 0;
  let peakThere = 0;
  for (let i = 0; i < 15; i++) {
    await sleep(100);
    peakHere = Math.max(peakHere, usage().rss - before.here.rss);
    peakThere = Math.max(peakThere, (await other.usage()).rss - before.there.rss);
  }
  stream.on('error', () => {});
  stream.destroy();
  return { here: peakHere / 1e6, there: peakThere / 1e6 };
}

function aimed(row: Omit<BenchRow, 'ok'>, ok: (row: Omit<BenchRow, 'ok'>) => boolean): BenchRow {
  return { ...row, ok: ok(row) };
}

interface World {
  readonly other: Other;
  readonly tcp: Open;
  readonly quic: Open;
  readonly smallReads: Open;
  readonly connection: Connection;
  readonly dial: () => Promise<Connection>;
  readonly stop: () => Promise<void>;
}

async function startWorld(): Promise<World> {
  const child = fork(new URL('support/quic-child.ts', import.meta.url));
  const [hello]: Hello[] = await once(child, 'message');
  if (hello === undefined) throw new Error('the other process did not start');
  const key = Buffer.from(hello.key, 'hex');
  const endpoints: NativeQuicEndpoint[] = [];
  const endpoint = async (engine: QuicEngine): Promise<NativeQuicEndpoint> => {
    const options = { key: KeyPair.generate(), host: '127.0.0.1', port: 0 };
    const created = new NativeQuicEndpoint(options, { log: silentLog, engine });
    await created.start();
    endpoints.push(created);
    return created;
  };
  const [ours, small] = [await endpoint(loadEngine()), await endpoint(withSmallReads(loadEngine()))];
  const dial = (): Promise<Connection> => ours.dial({ host: '127.0.0.1', port: hello.quicPort }, key);
  const connection = await dial();
  const smallConnection = await small.dial({ host: '127.0.0.1', port: hello.stockPort }, key);
  return {
    other: new Other(child),
    connection,
    dial,
    quic: () => connection.openStream(),
    smallReads: () => smallConnection.openStream(),
    async tcp() {
      const socket = connect({ port: hello.tcpPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
      await once(socket, 'connect');
      return socket;
    },
    async stop() {
      await Promise.all(endpoints.map((each) => each.stop()));
      child.kill();
    },
  };
}

async function memory({ quic, other }: World): Promise<BenchRow[]> {
  const grown = await measureBackpressure(quic, other);
  const what = `reader paused before ${HELD_BACK_MIB} MiB: growth of the`;
  const flat = ({ value }: { readonly value: number }): boolean => value <= 32;
  return [
    aimed({ what: `${what} reader`, value: grown.there, unit: 'MB', aim: '≤ 32 MB' }, flat),
    aimed({ what: `${what} writer`, value: grown.here, unit: 'MB', aim: '≤ 32 MB' }, flat),
  ];
}

interface Round {
  readonly tcp: Transfer;
  readonly quic: Transfer;
  readonly small: Transfer;
}

async function throughput({ tcp, quic, smallReads, other }: World, direction: Direction): Promise<BenchRow[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      tcp: await transfer(tcp, direction, TRANSFER_MIB, other),
      quic: await transfer(quic, direction, TRANSFER_MIB, other),
      small: await transfer(smallReads, direction, STOCK_TRANSFER_MIB, other),
    });
  }
  // The best round. Other work on the machine can only slow a round down.
  const fastest = (pick: (round: Round) => number): number => Math.max(...rounds.map(pick));
  const cheapest = (pick: (round: Round) => number): number => Math.min(...rounds.map(pick));
  const value = fastest((r) => r.quic.speed);
  const beside = (what: string, yardstick: number, least: number): BenchRow =>
    aimed(
      {
        what: `one stream ${direction}; yardstick: ${what}`,
        value,
        unit: 'MB/s',
        yardstick,
        ratio: value / yardstick,
        aim: `≥ ${least}`,
      },
      ({ ratio = 0 }) => ratio >= least,
    );
  return [
    beside(
      'TCP',
      fastest((r) => r.tcp.speed),
      0.2,
    ),
    beside(
      '4 KiB reads',
      fastest((r) => r.small.speed),
      3,
    ),
    ...(['sender', 'receiver'] as const).map((role): BenchRow => {
      const cpu = (t: Transfer): number => ((role === 'sender') === (direction === 'up') ? t.cpuHere : t.cpuThere);
      const [value, yardstick] = [cheapest((r) => cpu(r.quic)), cheapest((r) => cpu(r.small))];
      return {
        what: `  CPU of the ${role}; yardstick: 4 KiB reads`,
        value,
        unit: 's/GB',
        yardstick,
        ratio: value / yardstick,
      };
    }),
  ];
}

async function latency({ quic, tcp, connection, dial }: World): Promise<BenchRow[]> {
  const [ping, tcpPing] = [await pings(quic), await pings(tcp)];
  const roundTrip = (p: number): BenchRow => {
    const [value, yardstick] = [quantile(ping, p), quantile(tcpPing, p)];
    return { what: `round trip, p${p * 100}; yardstick: TCP`, value, unit: 'ms', yardstick, ratio: value / yardstick };
  };
  const what = 'question and answer on new streams,';
  return [
    roundTrip(0.5),
    roundTrip(0.99),
    { what: `${what} sequential`, value: await streamRate(connection, STREAMS_ONE_BY_ONE, 1), unit: '/s' },
    {
      what: `${what} ${STREAM_LANES} in parallel`,
      value: await streamRate(connection, STREAMS_AT_ONCE, STREAM_LANES),
      unit: '/s',
    },
    { what: 'connection set-up, p50', value: quantile(await dials(dial), 0.5), unit: 'ms' },
  ];
}

export async function run(): Promise<BenchTable> {
  const world = await startWorld();
  const rows = [
    // First, before other work increases the memory of the processes.
    ...(await memory(world)),
    ...(await throughput(world, 'up')),
    ...(await throughput(world, 'down')),
    ...(await latency(world)),
    { what: 'resident memory of the caller at the end', value: usage().rss / 1e6, unit: 'MB' },
  ];
  await world.stop();
  return { title: 'QUIC: two processes on loopback', rows };
}
