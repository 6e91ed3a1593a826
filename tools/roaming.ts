/**
 * `npm run lab:roaming -- [--tries 10] [--sleep 10] [change …]`: measures how fast a tunnel between real daemons
 * recovers from a change of network, `--tries` times per kind of change, and once after a sleep of `--sleep` minutes.
 * Exit code 1 if the promise of five seconds is missed.
 */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { SLEEP_MS } from '../src/foundation/stall.ts';
import { LabDaemon } from '../test/support/lab/daemons.ts';
import { Internet } from '../test/support/lab/internet.ts';
import type { NatKind } from '../test/support/lab/nat.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** 95 of 100 changes must recover within this time, milliseconds. */
const PROMISED_MS = 5_000;
/** Pause between changes, so that each starts from a stable state, milliseconds. */
const REST_MS = 12_000;
/** Duration of the idle measurement, milliseconds. */
const IDLE_MS = 60_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { tries: { type: 'string', default: '10' }, sleep: { type: 'string', default: '10' } },
});
const tries = Number(values.tries);

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** The engine sends about as many packets as it receives on a quiet connection. Each has IP and UDP headers. */
const HEADER_BYTES = 28;

interface NodeLinks {
  readonly links: readonly {
    readonly path: string;
    readonly bytes_up: number;
    readonly bytes_down: number;
    readonly packets_sent: number;
  }[];
}

/** Bytes so far on the busiest connection to a helper. */
async function helperBytes(daemon: LabDaemon): Promise<number> {
  const { links } = await daemon.call<NodeLinks>('GET', '/node/links');
  const direct = links.filter(({ path }) => path === 'direct');
  return Math.max(...direct.map((one) => one.bytes_up + one.bytes_down + 2 * HEADER_BYTES * one.packets_sent));
}

interface World extends AsyncDisposable {
  readonly internet: Internet;
  readonly mobile: LabDaemon;
  readonly home: LabDaemon;
  readonly listen: string;
  readonly carry: readonly (() => Promise<void>)[];
}

/** A mobile node, and a node at home behind a router with endpoint-independent ports. */
async function startWorld(kind: NatKind): Promise<World> {
  const internet = await Internet.open();
  const daemons: LabDaemon[] = [];
  const started = async (daemon: Promise<LabDaemon>): Promise<LabDaemon> => {
    const one = await daemon;
    daemons.push(one);
    return one;
  };
  const machine = await internet.behind('mobile', [kind]);
  const carry = [
    await internet.otherNetwork(machine, 'cafe', kind),
    await internet.otherNetwork(machine, 'train', kind),
  ] as const;
  const helper = await started(LabDaemon.start(await internet.publicMachine('helper', [10]), []));
  const [second, third, mobile, home] = await Promise.all([
    started(LabDaemon.start(await internet.publicMachine('helper2', [11]), BOOTSTRAP)),
    started(LabDaemon.start(await internet.publicMachine('helper3', [12]), BOOTSTRAP)),
    started(LabDaemon.start(machine, BOOTSTRAP)),
    started(LabDaemon.start(await internet.behind('home', ['cone']), BOOTSTRAP)),
  ]);
  await Promise.all(
    [helper, second, third].map((one) => one.until('strangers reach it', ({ nat_type }) => nat_type === 1)),
  );
  await Promise.all([mobile, home].map((one) => one.until('it is helped', ({ helpers }) => helpers.length === 3)));
  const [caller, called] = await Promise.all([mobile.serve(), home.serve()]);
  const { listen } = await mobile.call<{ readonly listen: string }>('POST', `/tunnel/${called}`, { local_aid: caller });
  return {
    internet,
    mobile,
    home,
    listen,
    carry,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(daemons.map((daemon) => daemon[Symbol.asyncDispose]()));
      await internet[Symbol.asyncDispose]();
    },
  };
}

let isKept = true;

type Change = (world: World, turn: number) => Promise<unknown>;

/** Both machines sleep and wake up together. */
async function bothSleep({ mobile, home }: World, ms: number): Promise<void> {
  await Promise.all([mobile, home].map((one) => one.signal('SIGSTOP')));
  await sleep(ms);
  await Promise.all([mobile, home].map((one) => one.signal('SIGCONT')));
}

/** By command line name. */
const CHANGES: Readonly<Record<string, { readonly what: string; readonly times: number; readonly change: Change }>> = {
  carried: {
    what: 'carried to another network',
    times: tries,
    change: async ({ carry }, turn) => await carry[turn % 2]?.(),
  },
  forgets: { what: 'the router at home forgets', times: tries, change: ({ internet }) => internet.forget('home') },
  readdressed: {
    what: 'the router at home gets another address',
    times: tries,
    change: ({ internet }) => internet.readdress('home'),
  },
  sleep: { what: 'both sleep', times: tries, change: (world) => bothSleep(world, SLEEP_MS + 500) },
  'long-sleep': {
    what: `both sleep for ${values.sleep} minutes`,
    times: 1,
    change: (world) => bothSleep(world, Number(values.sleep) * 60_000),
  },
};

/** Measures one kind of change: until bytes flow again, and until a new connection works. */
async function measure(kind: NatKind, world: World, { what, times, change }: (typeof CHANGES)[string]): Promise<void> {
  const { mobile, listen } = world;
  const flows: number[] = [];
  const fresh: number[] = [];
  for (let turn = 0; turn < times; turn++) {
    await mobile.flows();
    await change(world, turn);
    const changedAt = performance.now();
    const reached = mobile.reaches(listen).then(() => fresh.push(performance.now() - changedAt));
    const { disorder } = await mobile.flows();
    flows.push(performance.now() - changedAt);
    await reached;
    isKept &&= disorder === 0;
    await sleep(REST_MS);
  }
  for (const [measured, all] of [
    ['bytes flow', flows],
    ['new connection', fresh],
  ] as const) {
    const sorted = all.toSorted((a, b) => a - b);
    const [p50, p95] = [quantile(sorted, 0.5), quantile(sorted, 0.95)];
    isKept &&= p95 <= PROMISED_MS;
    const times = `p50 ${Math.round(p50)} ms, p95 ${Math.round(p95)} ms of ${sorted.length}`;
    console.log(`${kind}, ${what}, ${measured}: ${times}, load ${loadavg()[0]?.toFixed(1)}`);
  }
}

const chosen = Object.keys(CHANGES).filter((name) => positionals.length === 0 || positionals.includes(name));
if (chosen.length === 0) throw new Error(`Unknown change. Use ${Object.keys(CHANGES).join(', ')}.`);
for (const kind of ['cone', 'symmetric'] as const) {
  await using world = await startWorld(kind);
  const { mobile } = world;
  if (positionals.length === 0) {
    await sleep(IDLE_MS / 2);
    const before = await helperBytes(mobile);
    await sleep(IDLE_MS);
    const perSecond = ((await helperBytes(mobile)) - before) / (IDLE_MS / 1000);
    console.log(`${kind}: idle ${perSecond.toFixed(1)} bytes/s to a helper, headers of IP and UDP included`);
  }
  await mobile.pump(world.listen);
  for (const name of chosen) {
    const one = CHANGES[name];
    if (one !== undefined) await measure(kind, world, one);
  }
}
process.exitCode = isKept ? 0 : 1;
