import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkUnderWay } from '../../src/foundation/concurrency.ts';

test('idle waits for all work, including failed work and work that starts meanwhile', async () => {
  const work = new WorkUnderWay();
  await work.idle();
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const results = [work.run(() => first.promise)];
  let isIdle = false;
  const idle = work.idle().then(() => {
    isIdle = true;
  });
  results.push(work.run(() => second.promise));
  const failed = assert.rejects(results[0] ?? assert.fail(), /broken/);
  first.reject(new Error('broken'));
  await failed;
  assert.equal(isIdle, false);
  second.resolve('done');
  assert.equal(await results[1], 'done');
  await idle;
});
