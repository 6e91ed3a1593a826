import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyedMutex } from '../../src/foundation/concurrency.ts';

test('runs work on one key sequentially, and on different keys concurrently', async () => {
  const mutex = new KeyedMutex();
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const a = mutex.run('a', async () => {
    seen.push('a1');
    await first.promise;
    seen.push('a1 ends');
    throw new Error('fails');
  });
  const b = mutex.run('a', () => seen.push('a2'));
  await mutex.run('b', () => seen.push('b1'));
  assert.deepEqual(seen, ['a1', 'b1']);
  assert.deepEqual([mutex.size, mutex.has('a'), mutex.has('b')], [1, true, false]);
  first.resolve();
  await assert.rejects(a, /fails/);
  await b;
  assert.deepEqual([mutex.size, mutex.has('a')], [0, false]);
  assert.deepEqual(seen, ['a1', 'b1', 'a1 ends', 'a2']);
});

test('idle waits for all running work, even if it fails', async () => {
  const mutex = new KeyedMutex<number>();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const works = gates.map(({ promise }, key) => mutex.run(key, () => promise));
  const failed = assert.rejects(works[0] ?? Promise.resolve(), /no/);
  let isIdle = false;
  const idle = mutex.idle().then(() => {
    isIdle = true;
  });
  gates[0]?.reject(new Error('no'));
  await failed;
  assert.equal(isIdle, false);
  gates[1]?.resolve();
  await idle;
  assert.equal(mutex.size, 0);
  await mutex.idle();
});

test('returns the result of the work, and never starts it synchronously', async () => {
  const mutex = new KeyedMutex();
  let ran = false;
  const result = mutex.run('a', () => {
    ran = true;
    return 5;
  });
  assert.equal(ran, false);
  assert.equal(await result, 5);
});
