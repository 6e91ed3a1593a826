import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_BACKLOG_PER_SOURCE,
  MAX_BACKLOG_SOURCES,
  RequestBacklog,
} from '../../../src/network/records/routing-admission.ts';
import { TestClock } from '../../support/test-clock.ts';

function world() {
  const clock = new TestClock();
  const backlog = new RequestBacklog({ clock });
  const done: string[] = [];
  /** A request that needs this many milliseconds to process. */
  const ask = (source: string, ms: number, isProven = false): void => {
    const work = (): void => {
      done.push(source);
      clock.advance(ms);
    };
    backlog.add(source, work, isProven);
  };
  return { ask, done };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('fast requests are processed immediately', () => {
  const { ask, done } = world();
  for (let i = 0; i < 1000; i++) ask('a', 0);
  assert.equal(done.length, 1000);
});

test('slow requests leave time for other work', async () => {
  const { ask, done } = world();
  for (let i = 0; i < 10; i++) ask('a', 2);
  const counts: number[] = [];
  while (done.length < 10) {
    counts.push(done.length);
    await turn();
  }
  assert.deepEqual(counts, [3, 6, 9]);
  // The next turn has a new time budget.
  await turn();
  ask('a', 0);
  assert.equal(done.length, 11);
});

test('sources take turns. Each has a limited backlog, and further requests are dropped', async () => {
  const { ask, done } = world();
  ask('flood', 5);
  for (let i = 0; i < 1000; i++) ask('flood', 1);
  ask('honest', 1);
  await turn();
  assert.deepEqual(done.slice(0, 3), ['flood', 'flood', 'honest']);
  while (done.length < 1 + MAX_BACKLOG_PER_SOURCE + 1) await turn();
  await turn();
  assert.equal(done.length, 1 + MAX_BACKLOG_PER_SOURCE + 1);
});

test('a limited number of sources have a backlog', async () => {
  const { ask, done } = world();
  ask('flood', 5);
  for (let i = 0; i < MAX_BACKLOG_SOURCES + 10; i++) ask(`${i}`, 0);
  await turn();
  assert.equal(done.length, 1 + MAX_BACKLOG_SOURCES);
  await turn();
  ask('late', 0);
  assert.equal(done.at(-1), 'late');
});

test('forged sources leave room and turns for proven ones', async () => {
  const { ask, done } = world();
  ask('flood', 5);
  for (let i = 0; i < MAX_BACKLOG_SOURCES + 10; i++) ask(`${i}`, 2);
  ask('proven', 2, true);
  await turn();
  assert.ok(done.indexOf('proven') === 1, `${done.indexOf('proven')}`);
});
