import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Life, type Stage } from '../../src/daemon/life.ts';
import type { Component } from '../../src/foundation/lifecycle.ts';

function setUp() {
  const life = new Life();
  const heard: string[] = [];
  /** A part that says what becomes of it, and fails as the test says. */
  const part = (name: string, fails: { start?: Error; stop?: Error } = {}): Component => ({
    async start() {
      heard.push(`start ${name}`);
      if (fails.start !== undefined) throw fails.start;
    },
    async stop() {
      heard.push(`stop ${name}`);
      if (fails.stop !== undefined) throw fails.stop;
    },
  });
  return { life, heard, part };
}

test('parts start stage by stage, within one in the order in which they came, and stop the other way round', async () => {
  const { life, heard, part } = setUp();
  const stages: Stage[] = ['api', 'acting', 'network', 'answering'];
  for (const stage of stages) for (const n of [1, 2]) life.add(stage, part(`${stage} ${n}`));
  life.defer(() => heard.push('released'));
  await life.begin();
  const order = ['answering', 'network', 'acting', 'api'].flatMap((stage) => [`${stage} 1`, `${stage} 2`]);
  assert.deepEqual(
    heard,
    order.map((name) => `start ${name}`),
  );
  heard.length = 0;
  await life.end();
  assert.deepEqual(heard, [...order.toReversed().map((name) => `stop ${name}`), 'released']);
});

test('a part that is added does nothing before the life begins', async () => {
  const { life, heard, part } = setUp();
  life.add('api', part('api'));
  await life.end();
  assert.deepEqual(heard, []);
});

test('a part whose start fails is stopped with those before it, and none behind it starts', async () => {
  const { life, heard, part } = setUp();
  const failure = new Error('no network');
  life.add('answering', part('first'));
  life.add('network', part('second', { start: failure }));
  life.add('acting', part('third'));
  await assert.rejects(life.begin(), failure);
  await life.end();
  assert.deepEqual(heard, ['start first', 'start second', 'stop second', 'stop first']);
});

test('what fails to stop keeps nothing else from it, and the first failure is told', async () => {
  const { life, heard, part } = setUp();
  const [first, second] = [new Error('first'), new Error('second')];
  life.defer(() => {
    throw second;
  });
  await life.start(part('a'));
  await life.start(part('b', { stop: first }));
  await life.start(part('c'));
  await assert.rejects(life.end(), first);
  assert.deepEqual(heard.slice(3), ['stop c', 'stop b', 'stop a']);
});

test('one release waits for the one before, and all happen once', async () => {
  const { life, heard } = setUp();
  const slow = Promise.withResolvers<void>();
  life.defer(() => heard.push('first acquired'));
  life.defer(() => slow.promise.then(() => heard.push('last acquired')));
  const ended = life.end();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(heard, []);
  slow.resolve();
  await ended;
  await life.end();
  assert.deepEqual(heard, ['last acquired', 'first acquired']);
});
