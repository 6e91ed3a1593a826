import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Semaphore } from '../../src/foundation/concurrency.ts';

test('places are given in order, never more than there are', async () => {
  const slots = new Semaphore(2);
  const first = await slots.acquire();
  const second = await slots.acquire();
  const order: string[] = [];
  const third = slots.acquire().then((free) => {
    order.push('third');
    return free;
  });
  const fourth = slots.acquire().then((free) => {
    order.push('fourth');
    return free;
  });
  assert.equal(slots.busy, 4);
  first();
  first();
  (await third)();
  (await fourth)();
  second();
  assert.deepEqual(order, ['third', 'fourth']);
  assert.equal(slots.busy, 0);
});

test('a slot passed to a waiter cannot be acquired in between', async () => {
  const slots = new Semaphore(1);
  const free = await slots.acquire();
  const waiting = slots.acquire();
  free();
  const late = slots.acquire();
  assert.equal(slots.busy, 2);
  (await waiting)();
  (await late)();
  assert.equal(slots.busy, 0);
});

test('an aborted waiter leaves the queue', async () => {
  const slots = new Semaphore(1);
  const free = await slots.acquire();
  const abort = new AbortController();
  const waiting = slots.acquire(abort.signal);
  abort.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  await assert.rejects(slots.acquire(abort.signal), /gone/);
  free();
  assert.equal(slots.busy, 0);
  (await slots.acquire())();
});

test('work acquires a slot and releases it in every case', async () => {
  const semaphore = new Semaphore(1);
  const first = Promise.withResolvers<number>();
  const order: string[] = [];
  const one = semaphore.run(() => {
    order.push('one');
    return first.promise;
  });
  const two = semaphore.run(() => {
    order.push('two');
    throw new Error('fails');
  });
  const three = semaphore.run(async () => order.push('three'));
  assert.equal(semaphore.busy, 3);
  await Promise.resolve();
  assert.deepEqual(order, ['one']);
  first.resolve(1);
  assert.equal(await one, 1);
  await assert.rejects(two, /fails/);
  await three;
  assert.deepEqual(order, ['one', 'two', 'three']);
  assert.equal(semaphore.busy, 0);
});

test('work whose signal aborts before its turn is never begun', async () => {
  const semaphore = new Semaphore(1);
  const free = await semaphore.acquire();
  const abort = new AbortController();
  let began = false;
  const waiting = semaphore.run(() => {
    began = true;
  }, abort.signal);
  abort.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  free();
  assert.deepEqual([began, semaphore.busy], [false, 0]);
});

test('a signal that aborts later has no effect and is released', async () => {
  const semaphore = new Semaphore(1);
  const free = await semaphore.acquire();
  const { signal } = new AbortController();
  const waiting = semaphore.acquire(signal);
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  free();
  (await waiting)();
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  assert.equal(semaphore.busy, 0);
});
