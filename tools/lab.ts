/**
 * `npm run lab -- [--tries 20] [--round-trip 40] [--loss 0] [--logs directory] [pair …]`: real daemons at every place
 * that nodes have on the Internet, each pair of places (`cone-symmetric`: a caller behind the one, a called node behind
 * the other) tried so many times from no connection at all, over paths of a round trip in milliseconds, which lose a
 * part of the packets (0 to 1). Exit code 1 where a promise is missed; the logs of failures are kept.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { PAIRS, type Pair, pairName } from '../test/lab/places.ts';
import { Schedule } from '../test/lab/schedule.ts';
import { type Tried, tryPair } from '../test/lab/tries.ts';
import { columns, HEAD, judge } from '../test/lab/verdicts.ts';
import { World } from '../test/lab/world.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tries: { type: 'string', default: '20' },
    'round-trip': { type: 'string', default: '40' },
    loss: { type: 'string', default: '0' },
    logs: { type: 'string', default: 'lab-logs' },
  },
});
const pairs = PAIRS.filter((pair) => positionals.length === 0 || positionals.includes(pairName(pair)));
if (pairs.length === 0) throw new Error(`pairs are ${PAIRS.map(pairName).join(', ')}`);

/** What the daemons of a try have written, in files of their own. */
async function keepLogs(world: World, pair: Pair, number: number): Promise<void> {
  const directory = join(values.logs, `${pairName(pair)}-${number}`);
  mkdirSync(directory, { recursive: true });
  const daemons = {
    caller: world.party('caller', pair.caller).daemon,
    called: world.party('called', pair.called).daemon,
    ...Object.fromEntries(world.helpers.map((helper, i) => [`helper-${i}`, helper])),
  };
  for (const [name, daemon] of Object.entries(daemons))
    writeFileSync(join(directory, `${name}.log`), await daemon.output());
}

/** All tries of all pairs, one after the other: beside others their times would say nothing. */
async function tryAll(world: World): Promise<Map<Pair, Tried[]>> {
  const results = new Map<Pair, Tried[]>(pairs.map((pair) => [pair, []]));
  const schedule = new Schedule(pairs, Number(values.tries));
  for (;;) {
    const next = schedule.next(performance.now());
    if (next === null) return results;
    if (typeof next === 'number') {
      await delay(next);
      continue;
    }
    const tried = await tryPair(world, next);
    schedule.ended(next, performance.now());
    const all = results.get(next);
    all?.push(tried);
    const { missed } = judge(next, [tried]);
    const number = all?.length ?? 0;
    console.log(
      `${pairName(next)} ${number}: ${Math.round(tried.ms)} ms ${tried.first} ${tried.last} ${missed.join('; ')}`,
    );
    if (missed.length > 0) await keepLogs(world, next, number);
  }
}

const world = await World.start({ delayMs: Number(values['round-trip']) / 2, loss: Number(values.loss) }, pairs);
let results: Map<Pair, Tried[]>;
try {
  results = await tryAll(world);
} finally {
  await world[Symbol.asyncDispose]();
}
const verdicts = [...results].map(([pair, tries]) => judge(pair, tries));
console.log(`\n${columns([HEAD, ...verdicts.map(({ cells }) => cells)])}`);
const missed = verdicts.flatMap((verdict) => verdict.missed);
const [load = 0] = loadavg();
console.log(`\nLoad of the machine: ${load.toFixed(1)} on ${availableParallelism()} processors.`);
console.log(missed.length === 0 ? '\nAll promises are kept.' : `\n${missed.join('\n')}\nLogs: ${values.logs}`);
process.exit(missed.length === 0 ? 0 : 1);
