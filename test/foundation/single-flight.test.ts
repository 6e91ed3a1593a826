import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SingleFlight } from '../../src/foundation/concurrency.ts';

test('a call during the work shares it; a later call starts again', async () => {
  const flights = new SingleFlight<number>();
  const first = Promise.withResolvers<number>();
  let runs = 0;
  const work = (): Promise<number> => {
    runs++;
    return runs === 1 ? first.promise : Promise.resolve(runs);
  };
  assert.equal(flights.has('a'), false);
  const one = flights.run('a', work);
  const two = flights.run('a', work);
  assert.deepEqual([runs, flights.has('a'), flights.has('b')], [1, true, false]);
  assert.equal(await flights.run('b', work), 2);
  first.resolve(7);
  assert.deepEqual(await Promise.all([one, two]), [7, 7]);
  assert.equal(flights.has('a'), false, 'it ends before its waiters continue');
  assert.equal(await flights.run('a', work), 3);
});

test('all waiting callers see a failure, and the next call retries', async () => {
  const flights = new SingleFlight<number, number>();
  const failing = (): Promise<number> => Promise.reject(new Error('no'));
  const results = await Promise.allSettled([flights.run(1, failing), flights.run(1, failing)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(await flights.run(1, async () => 5), 5);
  const thrown = (): Promise<number> => {
    throw new Error('at once');
  };
  assert.throws(() => flights.run(2, thrown), /at once/);
  assert.equal(flights.has(2), false);
});
