import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EVENT_AGE_MS, EventLog } from '../../../src/capabilities/events/event-log.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { EventStore } from '../../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const one = newIdentity().aid;
const two = newIdentity().aid;

function world(t: TestContext, maxPerAgent?: number) {
  const file = join(temporaryDirectory(t), 'svcd.db');
  const clock = new TestClock();
  const open = () => {
    const store = Store.open(file, MIGRATIONS);
    return { store, log: new EventLog(new EventStore(store, maxPerAgent), clock, silentLog) };
  };
  return { clock, open, ...open() };
}

function received(log: EventLog, aid = one, seq = 1): number {
  return log.emit(aid, 'chat.received', { peer: two, seq });
}

test('a new log is empty, and a cursor of 0 is no gap', (t) => {
  const { log } = world(t);
  assert.deepEqual(log.page(one, 0, 10), { events: [], lastSeq: 0, oldestSeq: 0, truncated: false });
});

test('events of all agents share one sequence; a page is for one agent or for all', (t) => {
  const { log, clock } = world(t);
  assert.equal(received(log), 1);
  assert.equal(received(log, two), 2);
  assert.equal(log.emit(one, 'chat.unread', { peer: two, unread_count: 3 }), 3);
  const page = log.page(one, 0, 10);
  assert.deepEqual(
    page.events.map(({ seq, type, at, data }) => [seq, type, at, JSON.parse(data)]),
    [
      [1, 'chat.received', clock.now(), { peer: two, seq: 1 }],
      [3, 'chat.unread', clock.now(), { peer: two, unread_count: 3 }],
    ],
  );
  assert.equal(page.lastSeq, 3);
  assert.equal(page.oldestSeq, 1);
  assert.deepEqual(
    log.page(null, 0, 10).events.map(({ seq }) => seq),
    [1, 2, 3],
  );
  assert.deepEqual(
    log.page(null, 0, 10, ['chat.unread']).events.map(({ seq }) => seq),
    [3],
  );
});

test('consecutive pages by lastSeq neither lose nor repeat an event', (t) => {
  const { log } = world(t);
  for (let i = 0; i < 25; i++) received(log, i % 3 === 0 ? two : one, i);
  const seen: number[] = [];
  for (let after = 0; ; ) {
    const page = log.page(one, after, 4);
    if (page.events.length === 0) break;
    seen.push(...page.events.map(({ seq }) => seq));
    after = page.lastSeq;
  }
  const wanted = Array.from({ length: 25 }, (_, i) => i + 1).filter((seq) => (seq - 1) % 3 !== 0);
  assert.deepEqual(seen, wanted);
});

test('an event is committed or rolled back with its transaction', (t) => {
  const { log, store } = world(t);
  assert.throws(() =>
    store.transaction(() => {
      received(log);
      throw new Error('no');
    }),
  );
  assert.deepEqual(log.page(one, 0, 10).events, []);
  store.transaction(() => received(log));
  assert.equal(log.page(one, 0, 10).events.length, 1);
});

test('the log survives a restart, and numbers continue', (t) => {
  const { log, store, open } = world(t);
  received(log);
  store.close();
  const again = open();
  assert.equal(received(again.log), 2);
  assert.equal(again.log.page(one, 0, 10).events.length, 2);
});

test('only the newest events of an agent are stored; an old cursor is reported, a current one is not', (t) => {
  const { log } = world(t, 5);
  received(log, two);
  for (let i = 0; i < 8; i++) received(log);
  const page = log.page(one, 0, 10);
  assert.deepEqual(
    page.events.map(({ seq }) => seq),
    [5, 6, 7, 8, 9],
  );
  assert.equal(page.truncated, false);
  assert.deepEqual(log.page(one, 3, 10), { events: [], lastSeq: 9, oldestSeq: 5, truncated: true });
  assert.equal(log.page(one, 4, 10).truncated, false);
  assert.equal(log.page(two, 1, 10).truncated, false);
  assert.equal(log.page(null, 3, 10).truncated, true);
  assert.equal(log.page(null, 4, 10).truncated, false);
});

test('a cursor from the future is reported', (t) => {
  const { log } = world(t);
  received(log);
  assert.equal(log.page(one, 2, 10).truncated, true);
  assert.equal(log.page(two, 1, 10).truncated, false);
});

test('events are deleted after seven days, a few at a time', async (t) => {
  const { log, clock, store } = world(t);
  t.after(() => log.stop());
  for (let i = 0; i < 1200; i++) received(log, i % 2 === 0 ? one : two, i);
  clock.jump(EVENT_AGE_MS + 1);
  received(log);
  await log.start();
  clock.advance(1_000);
  assert.deepEqual(
    log.page(null, 0, 10).events.map(({ seq }) => seq),
    [1201],
  );
  assert.equal(log.page(two, 1, 10).truncated, true);
  assert.deepEqual(log.page(two, 0, 10), { events: [], lastSeq: 1200, oldestSeq: 0, truncated: false });
  assert.equal(Number(store.one('SELECT count FROM event_streams WHERE aid = ?', one)?.['count']), 1);
});

test('old events remain while the disk rejects writes', async (t) => {
  const { clock, store, log } = world(t);
  received(log);
  clock.jump(EVENT_AGE_MS + 1);
  await log.start();
  store.one('PRAGMA query_only = ON');
  clock.advance(1000);
  store.one('PRAGMA query_only = OFF');
  assert.equal(log.page(null, 0, 10).events.length, 1);
  clock.advance(10 * 60_000);
  assert.equal(log.page(null, 0, 10).events.length, 0);
  await log.stop();
});

test('the events of a deleted agent are deleted', (t) => {
  const { log } = world(t);
  received(log);
  received(log, two);
  log.forget(one);
  assert.deepEqual(
    log.page(null, 0, 10).events.map(({ seq }) => seq),
    [2],
  );
  assert.equal(received(log), 3);
});
