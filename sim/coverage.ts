/**
 * Which users call each operation and read each event in the runs of the gate, which rule judges it, and how often it
 * failed.
 */
import { join } from 'node:path';
import { EVENT_TYPES } from '../src/foundation/events.ts';
import { NODE_EVENT_TYPES } from '../src/foundation/node-events.ts';
import { OK } from './model/ledger.ts';
import { type OperationName, RULES } from './model/rules.ts';
import { simulate } from './runs.ts';
import type { WorldFigures } from './world.ts';

const ROOT: string = join(import.meta.dirname, '..');
const SMALL = '--nodes 4 --days 0.01 --actions 60 --pause 5 --healing 15'.split(' ');
const SEEDS = ['1', '2', '11', '12'];

type Figures = Pick<WorldFigures, 'answers' | 'eventTypes'>;

/** How an operation is judged beside its declaration. */
function ruleOf(name: OperationName): string {
  const rule = RULES[name];
  if (typeof rule === 'string') return `declaration only: ${rule}`;
  const { reads, changes, refusal, args } = rule;
  if (reads !== undefined) return `equals the model (${reads})`;
  if (changes !== undefined) return 'changes the model';
  if (refusal !== undefined) return 'is refused as the model says';
  return args === undefined ? 'succeeds' : 'succeeds for an agent of the node';
}

/** One line for each operation and event: users, answers, failures, rule. */
export function coverageOf(runs: readonly Figures[]): {
  readonly lines: readonly string[];
  readonly uncalled: readonly string[];
} {
  const uncalled: string[] = [];
  const operations = (Object.keys(RULES) as OperationName[]).map((name) => {
    const users = new Map<string, number>();
    const codes = new Map<string, number>();
    for (const { answers } of runs)
      for (const [user, counts] of Object.entries(answers[name] ?? {}))
        for (const [code, count] of Object.entries(counts)) {
          users.set(user, (users.get(user) ?? 0) + count);
          codes.set(code, (codes.get(code) ?? 0) + count);
        }
    if (users.size === 0 && typeof RULES[name] !== 'string') uncalled.push(name);
    const failures = [...codes].filter(([code]) => code !== OK).map(([code, count]) => `${code} ${count}`);
    const who = [...users].map(([user, count]) => `${user} ${count}`).join(', ') || '-';
    return [name, who, codes.get(OK) ?? 0, failures.join(', ') || '-', ruleOf(name)].join(' | ');
  });
  const events = [...EVENT_TYPES, ...NODE_EVENT_TYPES].map((type) => {
    const count = runs.reduce((sum, { eventTypes }) => sum + (eventTypes[type] ?? 0), 0);
    return [`event ${type}`, count === 0 ? '-' : 'readers', count, '-', 'declaration only: events are hints'].join(
      ' | ',
    );
  });
  return { lines: ['operation | users | succeeded | failed | rule', ...operations, ...events], uncalled };
}

/** Runs the small worlds of the gate. Exits with 1 if an operation with a rule is never called. */
export async function main(): Promise<void> {
  const runs: Figures[] = [];
  for (const seed of SEEDS) {
    const { figures } = await simulate(ROOT, [...SMALL, '--seed', seed]);
    runs.push({ answers: figures?.answers ?? {}, eventTypes: figures?.eventTypes ?? {} });
  }
  const { lines, uncalled } = coverageOf(runs);
  for (const line of lines) console.log(line);
  console.log(`Operations with a rule that no user called: ${uncalled.join(', ') || 'none'}`);
  process.exit(uncalled.length === 0 ? 0 : 1);
}
