import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { alone } from '../../../tools/bundle/alone.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('one after the other, and the lock goes with the work', async (t) => {
  const lock = join(temporaryDirectory(t), 'lock');
  const order: string[] = [];
  const work = (name: string) =>
    alone(lock, async () => {
      order.push(`${name} begins`);
      await new Promise(setImmediate);
      order.push(`${name} ends`);
    });
  await Promise.all([work('first'), work('second')]);
  assert.deepEqual(order, ['first begins', 'first ends', 'second begins', 'second ends']);
  await assert.rejects(
    alone(lock, async () => {
      throw new Error('failed');
    }),
    /failed/,
  );
  assert.equal(existsSync(lock), false);
});

test('the lock of a process that is gone holds nobody up', async (t) => {
  const lock = join(temporaryDirectory(t), 'lock');
  const { pid } = spawnSync(process.execPath, ['--version']);
  writeFileSync(lock, String(pid));
  let worked = false;
  await alone(lock, async () => {
    worked = true;
  });
  assert.equal(worked, true);
});
