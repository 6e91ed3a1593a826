/**
 * Which users call each operation and read each event in small worlds of the gate, and how often it failed. Each answer is
 * compared with the declaration of its operation; what it must contain is known to some users only.
 */
import { join } from 'node:path';
import { EVENT_TYPES } from '../src/foundation/events.ts';
import { NODE_EVENT_TYPES } from '../src/foundation/node-events.ts';
import { operations } from '../src/operations/index.ts';
import { OK } from './model/ledger.ts';
import { simulate } from './runs.ts';
import type { WorldFigures } from './world.ts';

const ROOT: string = join(import.meta.dirname, '..');
const SMALL = '--nodes 4 --days 0.01 --actions 60 --pause 5 --healing 15'.split(' ');
const SEEDS = ['1', '2', '11', '12'];

type Figures = Pick<WorldFigures, 'answers' | 'eventTypes'>;

/** One line for each operation and event: users, answers, failures. */
function coverageOf(runs: readonly Figures[]): { readonly lines: readonly string[]; readonly called: number } {
  let called = 0;
  const answered = Object.keys(operations).map((name) => {
    const users = new Map<string, number>();
    const codes = new Map<string, number>();
    for (const { answers } of runs)
      for (const [user, counts] of Object.entries(answers[name] ?? {}))
        for (const [code, count] of Object.entries(counts)) {
          users.set(user, (users.get(user) ?? 0) + count);
          codes.set(code, (codes.get(code) ?? 0) + count);
        }
    if (users.size > 0) called++;
    const failures = [...codes].filter(([code]) => code !== OK).map(([code, count]) => `${code} ${count}`);
    const who = [...users].map(([user, count]) => `${user} ${count}`).join(', ') || 'no user';
    return [name, who, `${codes.get(OK) ?? 0} succeeded`, failures.join(', ') || 'none failed'].join(' | ');
  });
  const events = [...EVENT_TYPES, ...NODE_EVENT_TYPES].map((type) => {
    const count = runs.reduce((sum, { eventTypes }) => sum + (eventTypes[type] ?? 0), 0);
    return `event ${type} | ${count === 0 ? 'no reader' : `read ${count} times`}`;
  });
  return { lines: [...answered, ...events], called };
}

/** Runs the small worlds and prints the table. */
export async function main(): Promise<void> {
  const runs: Figures[] = [];
  for (const seed of SEEDS) {
    const { figures } = await simulate(ROOT, [...SMALL, '--seed', seed]);
    runs.push({ answers: figures?.answers ?? {}, eventTypes: figures?.eventTypes ?? {} });
  }
  const { lines, called } = coverageOf(runs);
  for (const line of lines) console.log(line);
  console.log(`${called} of ${Object.keys(operations).length} operations are called`);
}
