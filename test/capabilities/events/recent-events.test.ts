import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  eventFrame,
  MAX_BATCH_BYTES,
  MAX_RECENT_BYTES,
  MAX_RECENT_EVENTS,
  RecentEvents,
  type SubscriberFilter,
} from '../../../src/capabilities/events/recent-events.ts';
import type { StoredEvent } from '../../../src/foundation/store/events.ts';
import { newIdentity } from '../../support/identities.ts';

const aid = newIdentity().aid;
const ALL: SubscriberFilter = { aid: null, types: null, key: '' };

/** An event whose frame has this many bytes, or as few as possible. */
function event(seq: number, bytes = 0): StoredEvent {
  const bare = { seq, aid, type: 'chat.received', at: 0, data: '""' };
  return { ...bare, data: `"${'x'.repeat(Math.max(0, bytes - eventFrame(bare).length))}"` };
}

test('a limited number of the newest events is cached', () => {
  const recent = new RecentEvents(0);
  recent.add(Array.from({ length: MAX_RECENT_EVENTS }, (_, i) => event(i + 1)));
  assert.equal(recent.reaches(0), true);
  recent.add([event(MAX_RECENT_EVENTS + 1)]);
  assert.deepEqual([recent.reaches(0), recent.reaches(1)], [false, true]);
});

test('and a limited number of bytes', () => {
  const half = MAX_RECENT_BYTES / 2;
  const full = new RecentEvents(0);
  full.add([event(1, half), event(2, half)]);
  assert.equal(full.reaches(0), true);
  const over = new RecentEvents(0);
  over.add([event(1, half), event(2, half + 1)]);
  assert.deepEqual([over.reaches(0), over.reaches(1), over.position], [false, true, 2]);
});

test('a batch ends with the event that fills it, and the next one starts after it', () => {
  const recent = new RecentEvents(10);
  recent.add([event(11, MAX_BATCH_BYTES - 1), event(12), event(13), event(20)]);
  const first = recent.batch(ALL, 10);
  assert.equal(first.seq, 12);
  const second = recent.batch(ALL, first.seq);
  assert.equal(second.seq, 20);
  assert.deepEqual(second.bytes, Buffer.concat([event(13), event(20)].map(eventFrame)));
  assert.deepEqual(recent.batch(ALL, 15).bytes, eventFrame(event(20)), 'a position between two events');
});
