import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Life } from '../../src/daemon/life.ts';
import type { Component } from '../../src/foundation/lifecycle.ts';

function recorder() {
  const said: string[] = [];
  const part = (name: string, fails: 'start' | 'stop' | null = null): Component => {
    const say = (what: 'start' | 'stop') => async () => {
      said.push(`${what} ${name}`);
      if (fails === what) throw new Error(`${what} of ${name}`);
    };
    return { start: say('start'), stop: say('stop') };
  };
  return { said, part };
}

test('parts start stage by stage, in a stage as they were added, and stop in the opposite order', async () => {
  const { said, part } = recorder();
  const life = new Life();
  life.defer(() => said.push('release'));
  life.add('api', part('api'));
  life.add('acting', part('directory'));
  life.add('network', part('endpoint'));
  life.add('answering', part('registry'));
  life.add('network', part('records'));
  assert.deepEqual(said, []);
  await life.begin();
  const order = ['registry', 'endpoint', 'records', 'directory', 'api'];
  assert.deepEqual(
    said.splice(0),
    order.map((name) => `start ${name}`),
  );
  await life.end();
  assert.deepEqual(said.splice(0), [...order.toReversed().map((name) => `stop ${name}`), 'release']);
  await life.end();
  assert.deepEqual(said, [], 'everything is released once');
});

test('a part that cannot start is stopped, with those before it, and none after it starts', async () => {
  const { said, part } = recorder();
  const life = new Life();
  for (const one of [part('a'), part('b', 'start'), part('c')]) life.add('network', one);
  await assert.rejects(life.begin(), /start of b/);
  await life.end();
  assert.deepEqual(said, ['start a', 'start b', 'stop b', 'stop a']);
});

test('what fails at the end keeps nothing else from its release, and is told', async () => {
  const { said, part } = recorder();
  const life = new Life();
  life.defer(() => {
    said.push('release');
    throw new Error('the last failure');
  });
  await life.start(part('a'));
  await life.start(part('b', 'stop'));
  await assert.rejects(life.end(), /stop of b/);
  assert.deepEqual(said, ['start a', 'start b', 'stop b', 'stop a', 'release']);
});
