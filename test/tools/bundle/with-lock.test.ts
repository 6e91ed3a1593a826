import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withLock } from '../../../tools/bundle/with-lock.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

test('tasks run one at a time, and the lock is removed after each', async (t) => {
  const lock = join(temporaryDirectory(t), 'lock');
  const order: string[] = [];
  const work = (name: string) =>
    withLock(lock, async () => {
      order.push(`${name} begins`);
      await new Promise(setImmediate);
      order.push(`${name} ends`);
    });
  await Promise.all([work('first'), work('second')]);
  assert.deepEqual(order, ['first begins', 'first ends', 'second begins', 'second ends']);
  await assert.rejects(
    withLock(lock, async () => {
      throw new Error('failed');
    }),
    /failed/,
  );
  assert.equal(existsSync(lock), false);
});

test('the lock of an exited process is ignored', async (t) => {
  const lock = join(temporaryDirectory(t), 'lock');
  const { pid } = spawnSync(process.execPath, ['--version']);
  writeFileSync(lock, String(pid));
  let worked = false;
  await withLock(lock, async () => {
    worked = true;
  });
  assert.equal(worked, true);
});
