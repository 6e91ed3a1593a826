/**
 * Perceived latency: one small operation at a time. Compares svcd in alternation with A2AL (`SVCD_BENCH_A2AL` names its
 * program), or with another checkout (`SVCD_BENCH_BEFORE`). The ratio is the median of consecutive pairs. Without
 * either, the yardstick is a request to a plain Node service after each step, which shows the speed of the machine.
 * `BENCH_FELT` selects parts, separated by commas.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from './felt/api.ts';
import { fetches, tunnels } from './felt/calls.ts';
import { chat, notes, publishing, type Step, type Taken } from './felt/messages.ts';
import { cpuMs, type FeltNetwork, otherNetwork, svcdNetwork, YARDSTICK } from './felt/nodes.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

/**
 * Nodes of a network. Publishing, notes and chat query many nodes. Calls and tunnels need two, and their common
 * bootstrap node.
 */
const NODES = 8;
const SMALL_NETWORK_NODES = 3;
/**
 * Milliseconds between two idle checks of all nodes, the CPU time that counts as idle, and the maximum time for all
 * checks.
 */
const LOOK_MS = 100;
const RESTING_CPU_MS = 10;
const MAX_REST_MS = 3000;

/**
 * Targets for the median in milliseconds, even without another product. All other rows have a target ratio of at most
 * 1.
 */
const TARGET_MS: ReadonlyMap<string, number> = new Map([
  ['publish, first', 15],
  ['publish again', 15],
  ['register a service', 15],
  ['note answered', 8],
  ['note, event at the receiver', 6],
]);

/**
 * The steps of a part, the number of warm-up steps, and the number of measured steps. V8 compiles frequent code only
 * after some hundred runs, and a node runs for days.
 */
interface Part {
  readonly name: string;
  readonly nodes: number;
  readonly warmUp: number;
  readonly samples: number;
  /**
   * True if work that follows an answer must finish before the next step, so that its CPU time counts and does not
   * delay others.
   */
  readonly rests?: boolean;
  readonly make: (network: FeltNetwork) => Promise<Step>;
}

async function child(script: string): Promise<{ port: number; stop: () => void }> {
  const started = fork(new URL(`support/${script}`, import.meta.url), []);
  const [message]: unknown[] = await once(started, 'message');
  const port = typeof message === 'object' && message !== null && 'port' in message ? Number(message.port) : 0;
  return { port, stop: () => started.disconnect() };
}

function cpuOf({ nodes }: FeltNetwork): number {
  return nodes.reduce((sum, { pid }) => sum + cpuMs(pid), 0);
}

/** Resolves when the nodes of all networks are idle. */
async function rest(networks: readonly FeltNetwork[]): Promise<void> {
  const all = (): number => networks.reduce((sum, network) => sum + cpuOf(network), 0);
  const until = performance.now() + MAX_REST_MS;
  for (let last = all(); performance.now() < until; ) {
    await delay(LOOK_MS);
    const now = all();
    if (now - last <= RESTING_CPU_MS) return;
    last = now;
  }
}

/** The result of an attempt, or null: the other product fails under load. */
async function attempt<T>({ name }: FeltNetwork, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (name === 'svcd') throw error;
    console.error(`${name} failed: ${String(error)}`);
    return null;
  }
}

/** Milliseconds of one request to a plain Node service. */
async function plainMs(port: number): Promise<number> {
  const started = performance.now();
  await call(port, 'GET', '/');
  return performance.now() - started;
}

/** All samples of a part by network and measurement. With one network, also the samples of the plain service. */
async function measure(
  { make, warmUp, samples, rests = false }: Part,
  networks: readonly FeltNetwork[],
  plainPort: number,
) {
  const plain: number[] = [];
  const taken = networks.map((network) => ({ network, all: new Map<string, number[]>(), cpu: 0 }));
  const steps: (Step | null)[] = [];
  for (const network of networks) steps.push(await attempt(network, () => make(network)));
  for (let i = 0; i < warmUp + samples; i++) {
    for (const [at, of] of taken.entries()) {
      const step = steps[at];
      if (step === undefined || step === null) continue;
      const before = cpuOf(of.network);
      const result: Taken = (await attempt(of.network, () => step(i))) ?? {};
      if (rests) await rest(networks);
      if (i < warmUp) continue;
      of.cpu += cpuOf(of.network) - before;
      for (const [what, ms] of Object.entries(result)) of.all.set(what, [...(of.all.get(what) ?? []), ms]);
    }
    if (networks.length === 1 && i >= warmUp) plain.push(await plainMs(plainPort));
  }
  return { plain, taken: taken.map(({ all, cpu }) => ({ all, cpu: cpu / samples })) };
}

/** The rows of a part. */
async function rowsOfPart(part: Part, networks: readonly FeltNetwork[], plainPort: number): Promise<BenchRow[]> {
  const { plain, taken } = await measure(part, networks, plainPort);
  const [own, other] = taken;
  if (own === undefined) return [];
  const rows = [...own.all].flatMap(([what, samples]) => rowsOf(what, samples, other?.all.get(what), plain));
  const yardstick = other === undefined || other.all.size === 0 ? null : other.cpu;
  const ratio = yardstick === null ? {} : { yardstick, ratio: own.cpu / yardstick };
  return [
    ...rows,
    { what: `${part.name}: CPU of all ${part.nodes} nodes, each step`, value: own.cpu, unit: 'ms', ...ratio },
  ];
}

function rowsOf(
  what: string,
  own: readonly number[],
  other: readonly number[] | undefined,
  plain: readonly number[],
): BenchRow[] {
  const row = (p: number, name: string): BenchRow => {
    const value = quantile(own, p);
    const targetMs = TARGET_MS.get(what);
    const ofItself = p === 0.5 && targetMs !== undefined ? { aim: `≤ ${targetMs} ms`, ok: value <= targetMs } : {};
    if (other === undefined) {
      const compared = plain.length === 0 ? {} : { yardstick: quantile(plain, p), ratio: value / quantile(plain, p) };
      return { what: `${what}, ${name}`, value, unit: 'ms', ...compared, ...ofItself };
    }
    const yardstick = quantile(other, p);
    const ratio =
      p === 0.5
        ? quantile(
            own.map((ms, i) => ms / (other[i] ?? ms)),
            0.5,
          )
        : value / yardstick;
    const aim = targetMs === undefined ? { aim: '≤ 1 ×', ok: ratio <= 1 } : ofItself;
    return { what: `${what}, ${name}`, value, unit: 'ms', yardstick, ratio, ...aim };
  };
  return [row(0.5, 'p50'), row(0.99, 'p99')];
}

/**
 * Runs parts in networks of the same size, and records the load at the end. Daemons are stopped after a failure too.
 */
async function rowsOfNetworks(nodes: number, parts: readonly Part[], plainPort: number): Promise<BenchRow[]> {
  const networks: FeltNetwork[] = [];
  try {
    networks.push(await svcdNetwork(nodes));
    const other = await otherNetwork(nodes);
    if (other !== null) networks.push(other);
    const rows: BenchRow[] = [];
    for (const part of parts) rows.push(...(await rowsOfPart(part, networks, plainPort)));
    return rows;
  } finally {
    await Promise.all(networks.map((network) => network.stop()));
  }
}

export async function run(): Promise<BenchTable> {
  const web = await child('plain-http.ts');
  const echo = await child('tcp-service.ts');
  const all: Part[] = [
    {
      name: 'publish',
      nodes: NODES,
      warmUp: 40,
      samples: 40,
      rests: true,
      make: async (network) => publishing(network),
    },
    { name: 'notes', nodes: NODES, warmUp: 150, samples: 100, make: notes },
    { name: 'chat', nodes: NODES, warmUp: 400, samples: 200, make: chat },
    {
      name: 'fetch',
      nodes: SMALL_NETWORK_NODES,
      warmUp: 2000,
      samples: 600,
      make: async (network) => (await fetches(network, web.port)).one,
    },
    {
      name: 'fetches',
      nodes: SMALL_NETWORK_NODES,
      warmUp: 5,
      samples: 10,
      make: async (network) => (await fetches(network, web.port)).many,
    },
    {
      name: 'tunnel',
      nodes: SMALL_NETWORK_NODES,
      warmUp: 4000,
      samples: 1500,
      make: async (network) => (await tunnels(network, echo.port)).roundTrip,
    },
    {
      name: 'connect',
      nodes: SMALL_NETWORK_NODES,
      warmUp: 1500,
      samples: 300,
      make: async (network) => (await tunnels(network, echo.port)).connection,
    },
  ];
  const selected = process.env['BENCH_FELT']?.split(',') ?? all.map(({ name }) => name);
  const rows: BenchRow[] = [];
  try {
    for (const [nodes, parts] of Map.groupBy(
      all.filter(({ name }) => selected.includes(name)),
      (part) => part.nodes,
    ))
      rows.push(...(await rowsOfNetworks(nodes, parts, web.port)));
  } finally {
    web.stop();
    echo.stop();
  }
  rows.push({ what: 'load average of the machine, one minute', value: loadavg()[0] ?? 0, unit: '' });
  return {
    title: `Perceived latency; yardstick: ${YARDSTICK ?? 'one request to a plain Node service'} in the same run, in turns`,
    rows,
  };
}
