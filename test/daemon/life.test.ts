import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Life, type Stage } from '../../src/daemon/life.ts';
import type { Component } from '../../src/foundation/lifecycle.ts';

function setUp() {
  const life = new Life();
  const heard: string[] = [];
  /** A component that records its calls and fails as the test says. */
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

test('components start by stage and in order of registration, and stop in reverse order', async () => {
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

test('a registered component does nothing before begin', async () => {
  const { life, heard, part } = setUp();
  life.add('api', part('api'));
  await life.end();
  assert.deepEqual(heard, []);
});

test('a component that fails to start is stopped with the earlier ones, and later ones do not start', async () => {
  const { life, heard, part } = setUp();
  const failure = new Error('no network');
  life.add('answering', part('first'));
  life.add('network', part('second', { start: failure }));
  life.add('acting', part('third'));
  await assert.rejects(life.begin(), failure);
  await life.end();
  assert.deepEqual(heard, ['start first', 'start second', 'stop second', 'stop first']);
});

test('a failed stop does not prevent other stops, and the first failure is thrown', async () => {
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

test('releases run in sequence, each once', async () => {
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
