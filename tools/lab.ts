/**
 * `npm run lab -- [--tries 20] [--only group,pair] [--copies 1] [--at-once 1] [--round-trip 40] [--loss 0] [--slow
 * 3000] [--logs directory]`: connects real daemons behind every kind of NAT and firewall. A pair such as
 * `cone-symmetric` is a caller behind a cone NAT and a called node behind a symmetric one. Each try starts without a
 * connection. `--round-trip` is in milliseconds, `--loss` a share from 0 to 1.
 *
 * `--only` selects pairs and groups: open, from-open, cones, birthday, ipv6, relay. Pairs with networks that allow
 * little run only if they are named: `places` (all), one place (`udp-blocked`), or a pair. Rate
 * limits allow one try per pair of nodes every 20 seconds. `--copies` adds copies of all nodes, which are used in between. With `--at-once` above 1,
 * times are upper bounds. Logs are stored for tries that miss a promise or take longer than `--slow` milliseconds. Exit
 * code 1 if a promise is missed.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Pair, pairName, pairsNamed } from '../test/lab/places.ts';
import { Schedule, type Slot } from '../test/lab/schedule.ts';
import { type Tried, tryPair } from '../test/lab/tries.ts';
import { columns, HEAD, judge, pooled } from '../test/lab/verdicts.ts';
import { World } from '../test/lab/world.ts';

/** Poll interval while another try runs, milliseconds. */
const POLL_MS = 100;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tries: { type: 'string', default: '20' },
    only: { type: 'string', default: '' },
    copies: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '1' },
    'round-trip': { type: 'string', default: '40' },
    loss: { type: 'string', default: '0' },
    slow: { type: 'string', default: '3000' },
    logs: { type: 'string', default: 'lab-logs' },
  },
});
const pairs = pairsNamed([...positionals, ...values.only.split(',').filter((name) => name !== '')]);
const copies = Number(values.copies);
const results = new Map<Pair, Tried[]>(pairs.map((pair) => [pair, []]));

/** Stores the output of the daemons of a try, one file per daemon. */
async function keepLogs(world: World, { pair, copy }: Slot, number: number): Promise<void> {
  const directory = join(values.logs, `${pairName(pair)}-${number}`);
  mkdirSync(directory, { recursive: true });
  const daemons = {
    caller: world.party('caller', pair.caller, copy).daemon,
    called: world.party('called', pair.called, copy).daemon,
    ...Object.fromEntries(world.helpers.map((helper, i) => [`helper-${i}`, helper])),
  };
  for (const [name, daemon] of Object.entries(daemons))
    writeFileSync(join(directory, `${name}.log`), await daemon.output());
}

/** Runs tries until all are done. */
async function work(world: World, schedule: Schedule): Promise<void> {
  for (;;) {
    const next = schedule.next(performance.now());
    if (next === null) return;
    if (typeof next === 'number') {
      await delay(Math.min(next, POLL_MS));
      continue;
    }
    const tried = await tryPair(world, next);
    schedule.ended(next, performance.now());
    const all = results.get(next.pair) ?? [];
    const number = all.push(tried);
    const { missed } = judge(next.pair, [tried]);
    const [ms, lastMs] = [tried.ms, tried.lastMs].map(Math.round);
    const paths = `${tried.first} after ${ms} ms, ${tried.last} after ${lastMs} ms`;
    const at = new Date().toISOString().slice(11, 23);
    const problems = [...missed, ...(tried.error === undefined ? [] : [tried.error])];
    console.log(`${at} ${pairName(next.pair)} ${number}: ${paths} ${problems.join('; ')}`.trimEnd());
    if (missed.length > 0 || tried.ms > Number(values.slow)) await keepLogs(world, next, number);
  }
}

const slowness = { delayMs: Number(values['round-trip']) / 2, loss: Number(values.loss) };
const world = await World.start(slowness, pairs, copies);
const began = performance.now();
try {
  const schedule = new Schedule(pairs, { tries: Number(values.tries), copies });
  await Promise.all(Array.from({ length: Number(values['at-once']) }, () => work(world, schedule)));
} finally {
  await world[Symbol.asyncDispose]();
}
const seconds = (performance.now() - began) / 1000;
const verdicts = [...results].map(([pair, tries]) => judge(pair, tries));
console.log(`\n${columns([HEAD, ...verdicts.map(({ cells }) => cells)])}`);
const missed = verdicts.flatMap((verdict) => verdict.missed);
const [load = 0] = loadavg();
const count = [...results.values()].flat().length;
console.log(`\nLoad of the machine: ${load.toFixed(1)} on ${availableParallelism()} processors.`);
console.log(`${count} tries in ${Math.round(seconds)} s, ${(seconds / count).toFixed(1)} s each.`);
console.log(missed.length === 0 ? '\nAll promises are kept.' : `\n${missed.join('\n')}\nLogs: ${values.logs}`);
console.log(pooled(results));
process.exit(missed.length === 0 ? 0 : 1);
