import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots } from '../../../src/capabilities/calls/slots.ts';

test('places are given in order, never more than there are', async () => {
  const slots = new Slots(2);
  const first = await slots.take();
  const second = await slots.take();
  const order: string[] = [];
  const third = slots.take().then((free) => {
    order.push('third');
    return free;
  });
  const fourth = slots.take().then((free) => {
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

test('a place handed over cannot be taken in between', async () => {
  const slots = new Slots(1);
  const free = await slots.take();
  const waiting = slots.take();
  free();
  const late = slots.take();
  assert.equal(slots.busy, 2);
  (await waiting)();
  (await late)();
  assert.equal(slots.busy, 0);
});

test('who gives up leaves the queue', async () => {
  const slots = new Slots(1);
  const free = await slots.take();
  const abort = new AbortController();
  const waiting = slots.take(abort.signal);
  abort.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  await assert.rejects(slots.take(abort.signal), /gone/);
  free();
  assert.equal(slots.busy, 0);
  (await slots.take())();
});
