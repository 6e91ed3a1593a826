import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayQueue } from '../../../src/capabilities/push/queue-limits.ts';
import {
  MAX_QUEUED_BYTES_PER_PEER,
  MAX_QUEUED_NOTIFICATION_BYTES,
  MAX_QUEUED_NOTIFICATIONS,
  MAX_QUEUED_PER_PEER,
  MAX_QUEUED_PER_WEBHOOK,
} from '../../../src/foundation/domain/push.ts';

const NONE = { webhook: { count: 0, bytes: 0 }, peer: { count: 0, bytes: 0 }, all: { count: 0, bytes: 0 } };

test('a notification is queued while webhook, peer and node have room', () => {
  assert.ok(mayQueue(NONE, 1));
  const counts = { webhook: MAX_QUEUED_PER_WEBHOOK, peer: MAX_QUEUED_PER_PEER, all: MAX_QUEUED_NOTIFICATIONS };
  for (const [who, count] of Object.entries(counts)) {
    assert.ok(mayQueue({ ...NONE, [who]: { count: count - 1, bytes: 0 } }, 1), who);
    assert.ok(!mayQueue({ ...NONE, [who]: { count, bytes: 0 } }, 1), who);
  }
  for (const [who, bytes] of Object.entries({ peer: MAX_QUEUED_BYTES_PER_PEER, all: MAX_QUEUED_NOTIFICATION_BYTES })) {
    assert.ok(mayQueue({ ...NONE, [who]: { count: 0, bytes: bytes - 1 } }, 1), who);
    assert.ok(!mayQueue({ ...NONE, [who]: { count: 0, bytes } }, 1), who);
  }
});

test('a peer cannot use all the room with many webhooks', () => {
  assert.ok(MAX_QUEUED_PER_PEER * 8 <= MAX_QUEUED_NOTIFICATIONS);
  assert.ok(MAX_QUEUED_BYTES_PER_PEER * 8 <= MAX_QUEUED_NOTIFICATION_BYTES);
});
