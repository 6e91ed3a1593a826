/**
 * What a person or an agent waits for: one small thing at a time, of svcd and, where `SVCD_BENCH_A2AL` names its
 * program, of A2AL in turns with it. The ratio is the median of the pairs that were taken one after the other.
 * `BENCH_FELT` names the parts to run, separated by commas; left out: all.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fetches, tunnels } from './felt/calls.ts';
import { chat, notes, publishing, type Step, type Taken } from './felt/messages.ts';
import { a2alNetwork, cpuMs, type FeltNetwork, svcdNetwork } from './felt/nodes.ts';
import { type BenchRow, type BenchTable, quantile } from './table.ts';

const NODES = 8;

/** How the steps of a part are made, how many warm it up, and how many are measured. */
interface Part {
  readonly name: string;
  readonly warmUp: number;
  readonly samples: number;
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

/** What a step took; of the other product, which gives up under load, nothing where it fails. */
async function attempt(step: Step, index: number, { name }: FeltNetwork): Promise<Taken> {
  try {
    return await step(index);
  } catch (error) {
    if (name === 'svcd') throw error;
    console.error(`${name} failed: ${String(error)}`);
    return {};
  }
}

/** All samples of a part, of each network by what was measured. */
async function measure({ warmUp, samples, make }: Part, networks: readonly FeltNetwork[]) {
  const steps: Step[] = [];
  for (const network of networks) steps.push(await make(network));
  const taken = networks.map(() => new Map<string, number[]>());
  const cpu = networks.map(() => 0);
  for (let i = 0; i < warmUp + samples; i++) {
    for (const [at, step] of steps.entries()) {
      const network = networks[at];
      if (network === undefined) continue;
      const before = cpuOf(network);
      const result = await attempt(step, i, network);
      if (i < warmUp) continue;
      cpu[at] = (cpu[at] ?? 0) + cpuOf(network) - before;
      for (const [what, ms] of Object.entries(result)) {
        const all = taken[at]?.get(what) ?? [];
        taken[at]?.set(what, all);
        all.push(ms);
      }
    }
  }
  return { taken, cpu: cpu.map((ms) => ms / samples) };
}

function rowsOf(what: string, own: readonly number[], other: readonly number[] | undefined): BenchRow[] {
  const row = (p: number, name: string): BenchRow => {
    const value = quantile(own, p);
    if (other === undefined) return { what: `${what}, ${name}`, value, unit: 'ms' };
    const yardstick = quantile(other, p);
    const ratio =
      p === 0.5
        ? quantile(
            own.map((ms, i) => ms / (other[i] ?? ms)),
            0.5,
          )
        : value / yardstick;
    return { what: `${what}, ${name}`, value, unit: 'ms', yardstick, ratio, aim: '≤ 1 ×', ok: ratio <= 1 };
  };
  return [row(0.5, 'p50'), row(0.99, 'p99')];
}

export async function run(): Promise<BenchTable> {
  const web = await child('plain-http.ts');
  const echo = await child('tcp-service.ts');
  const own = await svcdNetwork(NODES);
  const other = await a2alNetwork(NODES);
  const networks = other === null ? [own] : [own, other];
  const parts: Part[] = [
    { name: 'publish', warmUp: 5, samples: 40, make: async (network) => publishing(network) },
    { name: 'notes', warmUp: 10, samples: 100, make: notes },
    { name: 'chat', warmUp: 10, samples: 200, make: chat },
    { name: 'fetch', warmUp: 200, samples: 600, make: async (network) => (await fetches(network, web.port)).one },
    { name: 'fetches', warmUp: 2, samples: 6, make: async (network) => (await fetches(network, web.port)).many },
    {
      name: 'tunnel',
      warmUp: 200,
      samples: 1500,
      make: async (network) => (await tunnels(network, echo.port)).roundTrip,
    },
    {
      name: 'connect',
      warmUp: 50,
      samples: 300,
      make: async (network) => (await tunnels(network, echo.port)).connection,
    },
  ];
  const wanted = process.env['BENCH_FELT']?.split(',') ?? parts.map(({ name }) => name);
  const rows: BenchRow[] = [];
  for (const part of parts.filter(({ name }) => wanted.includes(name))) {
    const { taken, cpu } = await measure(part, networks);
    for (const [what, samples] of taken[0] ?? []) rows.push(...rowsOf(what, samples, taken[1]?.get(what)));
    const [value = 0, yardstick] = cpu;
    const ratio = yardstick === undefined ? {} : { yardstick, ratio: value / yardstick };
    rows.push({ what: `${part.name}: CPU of all ${NODES} nodes, each step`, value, unit: 'ms', ...ratio });
  }
  rows.push({ what: 'load of the machine, of the last minute', value: loadavg()[0] ?? 0, unit: '' });
  for (const network of networks) await network.stop();
  web.stop();
  echo.stop();
  const title = other === null ? 'What is felt' : 'What is felt; yardstick: A2AL in the same run, in turns';
  return { title, rows };
}
