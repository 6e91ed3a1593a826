/** The simulator: equal seeds give equal events, and agents are found while nodes come and go. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from '../support/simulation.ts';

interface Figures {
  readonly lookups: number;
  readonly found: number;
  readonly left: number;
  readonly eventHash: string;
}

async function figuresOf(...options: string[]): Promise<Figures> {
  const { code, stdout, stderr } = await simulate(['records', ...options]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('agents are found while nodes come and go, and one seed gives one sequence of events', async () => {
  const options = ['--nodes', '12', '--hours', '0.05', '--session', '5', '--lookups', '1'];
  const [first, second, other] = await Promise.all([
    figuresOf(...options, '--seed', '1'),
    figuresOf(...options, '--seed', '1'),
    figuresOf(...options, '--seed', '2'),
  ]);
  assert.deepEqual(first, second);
  assert.notEqual(first.eventHash, other.eventHash);
  for (const { left, found, lookups } of [first, other]) {
    assert.ok(left > 0);
    assert.ok(lookups > 100);
    assert.equal(found, lookups);
  }
});

test('a run reports look-ups and messages before it ends', async () => {
  const options = ['--nodes', '6', '--hours', '0.01', '--report', '0.2'];
  const { stderr, stdout } = await simulate(['records', ...options]);
  const lines = stderr.match(
    /minutes: \d+ of \d+ look-ups found, \d+\.\d\d messages .*; since the last line: \d+ of /g,
  );
  assert.equal(lines?.length, 3, stderr);
  const { lookups, found } = JSON.parse(stdout) as Figures;
  assert.ok(stderr.includes(` ${found} of ${lookups} look-ups found`), stderr);
});

test('a wrong option ends the simulator with a message', async () => {
  const { code, stderr } = await simulate(['records', '--nodes', 'many']);
  assert.equal(code, 1);
  assert.match(stderr, /--nodes: a number from 2 to 100000, not "many"/);
});
