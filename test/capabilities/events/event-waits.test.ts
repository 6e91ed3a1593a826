import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EventLog } from '../../../src/capabilities/events/event-log.ts';
import { EventWaits, MAX_WAITING_READS } from '../../../src/capabilities/events/event-waits.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { EventStore } from '../../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const one = newIdentity().aid;
const two = newIdentity().aid;

/** A list of items; each new one comes with an event. */
async function world(t: TestContext) {
  const store = Store.open(join(temporaryDirectory(t), 'svcd.db'), MIGRATIONS);
  const clock = new TestClock();
  const log = new EventLog(new EventStore(store), clock, silentLog);
  const waits = new EventWaits(log, clock, silentLog);
  await waits.start();
  t.after(() => waits.stop());
  const items: string[] = [];
  let reads = 0;
  const read = (): readonly string[] => {
    reads += 1;
    return [...items];
  };
  const controller = new AbortController();
  const wait = (wait_s?: number, aid = one, from = read) =>
    waits.until({ aid, wait_s, client: controller }, from, (found) => found.length === 0);
  const emit = (aid = one): void => void log.emit(aid, 'chat.unread', { peer: two, unread_count: 1 });
  return { store, clock, waits, items, wait, emit, controller, reads: () => reads };
}

test('without a wait, a read returns nothing at once', async (t) => {
  const { wait, waits } = await world(t);
  assert.deepEqual(await wait(), []);
  assert.deepEqual(await wait(0), []);
  assert.equal(waits.active, 0);
});

test('a read that finds something does not wait', async (t) => {
  const { wait, items, reads } = await world(t);
  items.push('a');
  assert.deepEqual(await wait(60), ['a']);
  assert.equal(reads(), 1);
});

test('a waiting read returns after the event of its agent, and reads nothing for other agents', async (t) => {
  const { wait, items, emit, clock, waits, reads } = await world(t);
  const waiting = wait(60);
  emit(two);
  clock.advance(1000);
  assert.equal(reads(), 1);
  items.push('a');
  emit();
  clock.advance(0);
  assert.deepEqual(await waiting, ['a']);
  assert.equal(reads(), 2);
  assert.equal(waits.active, 0);
});

test('an event of another kind does not end the wait', async (t) => {
  const { wait, items, emit, clock, waits } = await world(t);
  const waiting = wait(60);
  emit();
  clock.advance(1000);
  assert.equal(waits.active, 1);
  items.push('a');
  emit();
  clock.advance(0);
  assert.deepEqual(await waiting, ['a']);
});

test('an event whose transaction is rolled back ends no wait', async (t) => {
  const { store, wait, items, emit, clock, reads } = await world(t);
  const waiting = wait(60);
  assert.throws(() =>
    store.transaction(() => {
      emit();
      throw new Error('rolled back');
    }),
  );
  clock.advance(1000);
  assert.equal(reads(), 1);
  items.push('a');
  emit();
  clock.advance(0);
  assert.deepEqual(await waiting, ['a']);
});

test('a wait ends after its time with the present events', async (t) => {
  const { wait, clock, waits } = await world(t);
  const waiting = wait(30);
  clock.advance(29_999);
  assert.equal(waits.active, 1);
  clock.advance(1);
  assert.deepEqual(await waiting, []);
  assert.equal(waits.active, 0);
});

test('a client that cancels or disconnects ends its wait', async (t) => {
  const { wait, controller, waits } = await world(t);
  const waiting = wait(60);
  controller.abort();
  await assert.rejects(waiting, (error) => error instanceof SvcError && error.code === 'cancelled');
  assert.equal(waits.active, 0);
  await assert.rejects(wait(60), (error) => error instanceof SvcError && error.code === 'cancelled');
});

test('a stop ends all waits with the present events, and later reads do not wait', async (t) => {
  const { wait, waits } = await world(t);
  const waiting = [wait(60), wait(60, two)];
  await waits.stop();
  assert.deepEqual(await Promise.all(waiting), [[], []]);
  assert.deepEqual(await wait(60), []);
});

test('the wait of a deleted agent fails like its next read', async (t) => {
  const { wait, waits } = await world(t);
  let isThere = true;
  const waiting = wait(60, one, () => {
    if (!isThere) throw new SvcError('not_found');
    return [];
  });
  isThere = false;
  waits.forget(one);
  await assert.rejects(waiting, (error) => error instanceof SvcError && error.code === 'not_found');
});

test('too many waits are refused, and a read without a wait still works', async (t) => {
  const { wait, waits } = await world(t);
  const waiting = Array.from({ length: MAX_WAITING_READS }, () => wait(60));
  await assert.rejects(wait(60), (error) => error instanceof SvcError && error.code === 'rate_limited');
  assert.deepEqual(await wait(), []);
  await waits.stop();
  await Promise.all(waiting);
});
