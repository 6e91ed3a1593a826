/** Complete nodes in virtual time: equal seeds give equal events, and no guarantee is broken. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { run } from '../support/programs.ts';

/** A seed that once broke a guarantee, and the options that it needs. */
interface Seed {
  readonly why: string;
  readonly options: readonly string[];
}

interface Figures {
  readonly eventHash: string;
  readonly users: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly violations: readonly { readonly guarantee: string; readonly text: string }[];
}

/** Seconds for fresh seeds. */
const FRESH_SECONDS = Number(process.env['SIM_SECONDS'] ?? 20);
const SMALL = ['--nodes', '4', '--days', '0.01', '--actions', '60', '--pause', '5', '--healing', '15'];
const FIXED_SEEDS = [11, 12];

async function simulate(options: readonly string[]): Promise<Figures> {
  const { stdout, stderr } = await run(process.execPath, ['sim/run.ts', ...options]);
  try {
    return JSON.parse(stdout);
  } catch {
    throw new Error(`npm run sim -- ${options.join(' ')}\n${stderr}`);
  }
}

async function assertHolds(options: readonly string[]): Promise<Figures> {
  const figures = await simulate(options);
  assert.deepEqual(figures.violations, [], `npm run sim -- ${options.join(' ')} --timeline`);
  return figures;
}

test('one seed gives one sequence of events, and users get done what they want', async () => {
  const [first, second, other] = await Promise.all([
    assertHolds([...SMALL, '--seed', '1']),
    assertHolds([...SMALL, '--seed', '1']),
    assertHolds([...SMALL, '--seed', '2']),
  ]);
  assert.equal(first.eventHash, second.eventHash);
  assert.notEqual(first.eventHash, other.eventHash);
  for (const [name, count] of [
    ['notes', 'collected'],
    ['calls', 'answered'],
    ['chats', 'friends'],
    ['groups', 'appended'],
  ] as const)
    assert.ok(
      [first, other].some(({ users }) => (users[name]?.[count] ?? 0) > 0),
      `${name}: ${count}`,
    );
});

test('every trial', async () => {
  const options = ['--users', 'trials', '--nodes', '3', '--agents', '1', '--faults', 'none', '--actions', '1000'];
  await assertHolds([...options, '--days', '0.01', '--healing', '1', '--seed', '1']);
});

test('every seed that once broke a guarantee', async () => {
  const seeds: readonly Seed[] = JSON.parse(readFileSync(new URL('./seeds.json', import.meta.url), 'utf8'));
  for (const { options } of seeds) await assertHolds(options);
});

test('further seeds, and fresh ones for 20 seconds or SIM_SECONDS', async () => {
  for (const seed of FIXED_SEEDS) await assertHolds([...SMALL, '--seed', `${seed}`]);
  const end = Date.now() + FRESH_SECONDS * 1000;
  for (let seed = Math.floor(Date.now() / 1000) % 1_000_000; Date.now() < end; seed++)
    await assertHolds([...SMALL, '--seed', String(seed)]);
});
