import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ReadTurns, Turns } from '../../../src/network/records/turns.ts';
import { TestClock } from '../../support/test-clock.ts';

test('holders take turns, with limits for one and for all', () => {
  const turns = new Turns<string>({ perHolder: 2, holders: 2 });
  const added = ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => turns.add(name.slice(0, 1), name));
  assert.deepEqual(added, [true, true, false, true, false]);
  assert.deepEqual([turns.next(), turns.next(), turns.next(), turns.next()], ['a1', 'b1', 'a2', undefined]);
  assert.ok(turns.isEmpty);
  assert.ok(turns.add('c', 'c1'));
});

/** Reads of 100 rows at 1,000 rows per second. */
function reader() {
  const clock = new TestClock();
  const reads = new ReadTurns({ perSecond: 1000, burst: 100 }, { clock });
  const done: string[] = [];
  const outcomes: string[] = [];
  const read = (network: string): void => {
    const work = (): number => {
      done.push(network);
      return 100;
    };
    void reads.run(network, work).then((isRead) => outcomes.push(`${network} ${isRead}`));
  };
  return { clock, reads, done, outcomes, read };
}

test('a network that reads much does not starve others', () => {
  const { clock, done, read } = reader();
  for (let i = 0; i < 10; i++) read('flood');
  assert.deepEqual(done, ['flood'], 'the budget is used up');
  read('honest');
  for (let i = 0; i < 3; i++) clock.advance(101);
  assert.deepEqual(done, ['flood', 'flood', 'honest', 'flood', 'flood']);
});

test('a read that waited too long is not done, and nothing waits after the end', async () => {
  const { clock, reads, done, outcomes, read } = reader();
  for (let i = 0; i < 12; i++) read('flood');
  for (let i = 0; i < 12; i++) clock.advance(101);
  await turn();
  assert.equal(done.length, 9);
  assert.equal(outcomes.filter((outcome) => outcome === 'flood false').length, 3);
  for (let i = 0; i < 3; i++) read('late');
  reads.stop();
  await turn();
  assert.equal(clock.timers, 0);
  assert.equal(outcomes.length, 15);
});

test('a waiting read that fails rejects, and the next ones continue', async () => {
  const { clock, reads, done, read } = reader();
  read('first');
  const failed = assert.rejects(
    reads.run('failing', () => {
      throw new Error('the disk fails');
    }),
    { message: 'the disk fails' },
  );
  read('next');
  clock.advance(101);
  await failed;
  assert.deepEqual(done, ['first', 'next']);
});
