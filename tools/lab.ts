/**
 * `npm run lab -- [--tries 20] [--only group,pair] [--copies 1] [--at-once 1] [--round-trip 40] [--loss 0] [--slow 3000]
 * [--logs directory]`: real daemons at every place that nodes have on the Internet, each pair of places
 * (`cone-symmetric`: a caller behind the one, a called node behind the other) tried so many times from no connection at
 * all, over paths of a round trip in milliseconds, which lose a part of the packets (0 to 1).
 *
 * `--only` takes pairs and groups: open, from-open, cones, birthday, ipv6, relay. Two nodes are tried every 20 seconds,
 * as the limits that they have towards each other allow it; with more copies of all nodes others are tried meanwhile.
 * With more than one try at once, times are upper bounds. The logs of tries that miss a promise or take longer than
 * `--slow` milliseconds are kept. Exit code 1 where a promise is missed.
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

/** How often one who waits for the end of another's try looks, milliseconds. */
const LOOK_MS = 100;

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

/** What the daemons of a try have written, in files of their own. */
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

/** Makes tries until none is left. */
async function work(world: World, schedule: Schedule): Promise<void> {
  for (;;) {
    const next = schedule.next(performance.now());
    if (next === null) return;
    if (typeof next === 'number') {
      await delay(Math.min(next, LOOK_MS));
      continue;
    }
    const tried = await tryPair(world, next);
    schedule.ended(next, performance.now());
    const all = results.get(next.pair) ?? [];
    const number = all.push(tried);
    const { missed } = judge(next.pair, [tried]);
    const [ms, lastMs] = [tried.ms, tried.lastMs].map(Math.round);
    const way = `${tried.first} after ${ms} ms, ${tried.last} after ${lastMs} ms`;
    const at = new Date().toISOString().slice(11, 23);
    console.log(`${at} ${pairName(next.pair)} ${number}: ${way} ${missed.join('; ')}`.trimEnd());
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
