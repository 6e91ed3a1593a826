import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { EventLog } from '../../../src/capabilities/events/event-log.ts';
import { EventStreams, MAX_BLOCKED_MS, type Subscription } from '../../../src/capabilities/events/event-streams.ts';
import type { PendingView } from '../../../src/capabilities/events/pending-counters.ts';
import { EVENT_HEARTBEAT_MS } from '../../../src/foundation/domain/events.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { EventStore } from '../../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { withCode } from '../../support/link-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const one = newIdentity().aid;
const two = newIdentity().aid;

/** A client with backpressure. */
class Client {
  text = '';
  full = false;
  end = '';
  readonly handle: { drained(): void; closed(): void };

  constructor(streams: EventStreams, subscription: Subscription) {
    this.handle = streams.subscribe(subscription, {
      write: (frames) => {
        this.text += frames.toString();
        return !this.full;
      },
      end: () => {
        this.end = 'ended';
      },
      destroy: () => {
        this.end = 'cut';
      },
    });
  }

  /** IDs of the received events, in order. */
  get ids(): number[] {
    return [...this.text.matchAll(/id: (\d+)\nevent: (?!log)/g)].map(([, id]) => Number(id));
  }
}

async function world(t: TestContext, limits: { perAgent?: number; subscribers?: number } = {}) {
  const clock = new TestClock();
  const store = Store.open(join(temporaryDirectory(t), 'svcd.db'), MIGRATIONS);
  const log = new EventLog(new EventStore(store, limits.perAgent), clock, silentLog);
  const pending: PendingView = {};
  const streams = new EventStreams(log, () => pending, clock, silentLog, limits.subscribers);
  await streams.start();
  t.after(async () => {
    await streams.stop();
    assert.equal(clock.timers, 0);
  });
  const emit = (aid = one, count = 1): void => {
    store.transaction(() => {
      for (let i = 0; i < count; i++) log.emit(aid, 'chat.received', { peer: two, seq: i });
    });
  };
  return { clock, store, log, streams, pending, emit, flush: () => clock.advance(50) };
}

test('without a cursor a stream is live, and reports its position', async (t) => {
  const { streams, emit, flush } = await world(t);
  emit();
  const client = new Client(streams, { aid: one });
  assert.equal(client.text, 'retry: 3000\n\nid: 1\n\n');
  emit();
  flush();
  assert.deepEqual(client.ids, [2]);
});

test('pending counters are sent first, without an id', async (t) => {
  const { streams, pending } = await world(t);
  pending[one] = { mailbox: 2, chat_invites: 0, chat_unread: 0 };
  const client = new Client(streams, { aid: one });
  assert.ok(
    client.text.startsWith(
      `retry: 3000\nevent: pending\ndata: {"${one}":{"mailbox":2,"chat_invites":0,"chat_unread":0}}\n\n`,
    ),
  );
});

test('a frame has id, event and data', async (t) => {
  const { streams, emit, flush } = await world(t);
  const client = new Client(streams, { aid: null });
  client.text = '';
  emit();
  flush();
  const data = `{"type":"chat.received","at":"2026-01-01T00:00:00.000Z","aid":"${one}","data":{"peer":"${two}","seq":0}}`;
  assert.equal(client.text, `id: 1\nevent: chat.received\ndata: ${data}\n\n`);
});

test('a resumed stream continues after its cursor and then live, each event once', async (t) => {
  const { streams, emit, flush } = await world(t);
  emit(one, 3);
  emit(two, 1);
  const client = new Client(streams, { aid: one, after: 1 });
  assert.deepEqual(client.ids, [2, 3]);
  emit(one, 2);
  flush();
  assert.deepEqual(client.ids, [2, 3, 5, 6]);
});

test('a stream contains the requested types of its agent; the stream of the node contains all agents', async (t) => {
  const { streams, log, emit, flush } = await world(t);
  const unread = new Client(streams, { aid: one, types: ['chat.unread'] });
  const all = new Client(streams, { aid: null });
  emit(two);
  emit(one);
  log.emit(one, 'chat.unread', { peer: two, unread_count: 1 });
  flush();
  assert.deepEqual(unread.ids, [3]);
  assert.deepEqual(all.ids, [1, 2, 3]);
});

test('events of a transaction are sent after its commit, and never after a rollback', async (t) => {
  const { streams, store, emit, flush } = await world(t);
  const client = new Client(streams, { aid: one });
  assert.throws(() =>
    store.transaction(() => {
      emit();
      throw new Error('no');
    }),
  );
  flush();
  assert.deepEqual(client.ids, []);
  store.transaction(() => {
    emit();
    assert.deepEqual(client.ids, []);
  });
  flush();
  assert.deepEqual(client.ids, [1]);
});

test('a cursor that is too old or from the future gets log.truncated once, then all stored events', async (t) => {
  const { streams, emit, flush } = await world(t, { perAgent: 4 });
  emit(one, 6);
  for (const after of [1, 99]) {
    const client = new Client(streams, { aid: one, after });
    const [, reported = '{}'] = /id: 2\nevent: log.truncated\ndata: (.*)\n\n/.exec(client.text) ?? [];
    assert.deepEqual(JSON.parse(reported).data, { oldest_seq: 3, last_seq: 6 });
    assert.deepEqual(client.ids, [3, 4, 5, 6]);
    client.handle.closed();
  }
  const current = new Client(streams, { aid: one, after: 2 });
  const whole = new Client(streams, { aid: one, after: 0 });
  for (const client of [current, whole]) {
    assert.ok(!client.text.includes('log.truncated'));
    assert.deepEqual(client.ids, [3, 4, 5, 6]);
  }
  emit();
  flush();
  assert.deepEqual(current.ids, [3, 4, 5, 6, 7]);
});

test('a client with backpressure receives nothing and loses nothing', async (t) => {
  const { streams, emit, flush } = await world(t);
  const slow = new Client(streams, { aid: one });
  const quick = new Client(streams, { aid: one });
  slow.full = true;
  emit();
  flush();
  const held = slow.text;
  emit(one, 6_000);
  flush();
  assert.equal(slow.text, held, 'no separate queue');
  assert.equal(quick.ids.length, 6_001);
  slow.full = false;
  slow.handle.drained();
  assert.deepEqual(slow.ids, quick.ids);
});

test('a client that fell behind the stored events receives log.truncated and continues', async (t) => {
  const { streams, emit, flush } = await world(t, { perAgent: 4_500 });
  const slow = new Client(streams, { aid: one });
  slow.full = true;
  emit();
  flush();
  emit(one, 10_000);
  flush();
  slow.full = false;
  slow.handle.drained();
  assert.equal(slow.text.match(/log.truncated/g)?.length, 2, 'one frame: its event and its type');
  assert.deepEqual(slow.ids, [1, ...Array.from({ length: 4_500 }, (_, i) => 5_502 + i)]);
});

test('a client that stays blocked is disconnected, others receive a comment', async (t) => {
  const { streams, emit, flush, clock } = await world(t);
  const stuck = new Client(streams, { aid: one });
  const well = new Client(streams, { aid: one });
  stuck.full = true;
  emit();
  flush();
  clock.advance(EVENT_HEARTBEAT_MS);
  assert.ok(well.text.endsWith(': \n\n'));
  assert.equal(stuck.end, '');
  clock.advance(MAX_BLOCKED_MS);
  assert.equal(stuck.end, 'cut');
  assert.equal(streams.active, 1);
});

test('a client that was blocked at a heartbeat is disconnected at the heartbeat after its timeout', async (t) => {
  const { streams, clock } = await world(t);
  const stuck = new Client(streams, { aid: one });
  stuck.full = true;
  clock.advance(EVENT_HEARTBEAT_MS);
  clock.advance(MAX_BLOCKED_MS - EVENT_HEARTBEAT_MS);
  assert.equal(stuck.end, '');
  clock.advance(EVENT_HEARTBEAT_MS);
  assert.equal(stuck.end, 'cut');
});

test('a closed client receives no further events, and is removed once', async (t) => {
  const { streams, emit, flush, clock } = await world(t);
  const [gone, stays] = [new Client(streams, { aid: one }), new Client(streams, { aid: one })];
  gone.handle.closed();
  gone.handle.closed();
  assert.equal(streams.active, 1);
  const before = gone.text;
  emit();
  flush();
  gone.handle.drained();
  clock.advance(EVENT_HEARTBEAT_MS);
  assert.equal(gone.text, before);
  assert.deepEqual(stays.ids, [1]);
});

test('subscribers are limited, and a closed one frees a slot', async (t) => {
  const { streams } = await world(t, { subscribers: 2 });
  const [first] = [new Client(streams, { aid: one }), new Client(streams, { aid: one })];
  assert.throws(() => new Client(streams, { aid: one }), withCode('rate_limited'));
  first?.handle.closed();
  assert.equal(new Client(streams, { aid: two }).end, '');
});

test('the streams of an agent end with the agent, and all streams end with the daemon', async (t) => {
  const { streams } = await world(t);
  const gone = new Client(streams, { aid: one });
  const stays = new Client(streams, { aid: null });
  streams.endStreamsOf(one);
  assert.deepEqual([gone.end, stays.end, streams.active], ['ended', '', 1]);
  await streams.stop();
  assert.deepEqual([stays.end, streams.active], ['ended', 0]);
  assert.throws(() => new Client(streams, { aid: one }), withCode('rate_limited'));
});

test('events without subscribers are not sent to the next live subscriber', async (t) => {
  const { streams, emit, flush } = await world(t);
  new Client(streams, { aid: one }).handle.closed();
  emit(one, 5);
  flush();
  const client = new Client(streams, { aid: one });
  emit();
  flush();
  assert.deepEqual(client.ids, [6]);
});

test('a client that is blocked from the start receives its events after the drain', async (t) => {
  const { streams, emit, flush } = await world(t);
  emit(one, 3);
  let isBlocked = true;
  let text = '';
  const handle = streams.subscribe(
    { aid: one, after: 0 },
    {
      write: (frames) => {
        text += frames.toString();
        return !isBlocked;
      },
      end: () => {},
      destroy: () => {},
    },
  );
  assert.doesNotMatch(text, /event: chat/);
  emit();
  flush();
  assert.doesNotMatch(text, /event: chat/);
  isBlocked = false;
  handle.drained();
  assert.equal(text.match(/event: chat/g)?.length, 4);
});
