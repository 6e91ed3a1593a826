import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { STRANGERS } from '../../../src/foundation/events.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { EventStore, MAX_CAUSE_SHARE } from '../../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';

const [A, B] = [testAid(1), testAid(2)];

function log(maxPerAgent?: number): EventStore {
  return new EventStore(Store.open(':memory:', MIGRATIONS), maxPerAgent);
}

function seqs(events: EventStore, aid?: Aid): number[] {
  return events.after(0, 100, { aid }).map(({ seq }) => seq);
}

test('events of all agents have one order, and can be filtered by agent and type', () => {
  const events = log();
  assert.deepEqual([events.lastSeq(), events.after(0, 9)], [0, []]);
  assert.equal(events.append(A, 'one', 5, '{"x":1}'), 1);
  assert.equal(events.append(B, 'two', 6, '{}'), 2);
  assert.equal(events.append(A, 'two', 7, '{}'), 3);
  assert.equal(events.lastSeq(), 3);
  assert.deepEqual(events.after(0, 1), [{ seq: 1, aid: A, type: 'one', at: 5, data: '{"x":1}' }]);
  const found = (...filter: Parameters<EventStore['after']>) => events.after(...filter).map(({ seq }) => seq);
  assert.deepEqual(found(1, 9), [2, 3]);
  assert.deepEqual(found(0, 9, { aid: A }), [1, 3]);
  assert.deepEqual(found(0, 9, { types: ['two', 'three'] }), [2, 3]);
  assert.deepEqual(found(2, 9, { aid: A, types: ['two'] }), [3]);
  assert.deepEqual(found(0, 9, { types: [] }), []);
});

test('each agent keeps its newest events, and its bounds report deleted ones', () => {
  const events = log(2);
  const none = { oldestSeq: 0, lastSeq: 0, prunedSeq: 0 };
  assert.deepEqual([events.bounds(), events.bounds(A)], [none, none]);
  for (const aid of [A, B, A]) events.append(aid, 't', 1, '');
  assert.deepEqual(seqs(events), [1, 2, 3]);
  assert.deepEqual(events.bounds(), { oldestSeq: 1, lastSeq: 3, prunedSeq: 0 });
  events.append(A, 't', 1, '');
  events.append(A, 't', 1, '');
  assert.deepEqual(seqs(events), [2, 4, 5]);
  assert.deepEqual(events.bounds(), { oldestSeq: 2, lastSeq: 5, prunedSeq: 3 });
  assert.deepEqual(events.bounds(A), { oldestSeq: 4, lastSeq: 5, prunedSeq: 3 });
  assert.deepEqual(events.bounds(B), { oldestSeq: 2, lastSeq: 2, prunedSeq: 0 });
});

test('by default ten thousand events are kept per agent', () => {
  const events = log();
  for (let i = 0; i <= 10_000; i++) events.append(A, 't', i, '');
  assert.deepEqual(events.bounds(A), { oldestSeq: 2, lastSeq: 10_001, prunedSeq: 1 });
});

test('old events are deleted oldest first, in batches', () => {
  const events = log();
  for (const [aid, at] of [
    [A, 1],
    [B, 2],
    [A, 3],
    [A, 4],
    [B, 5],
  ] as const)
    events.append(aid, 't', at, '');
  assert.equal(events.deleteBefore(1, 100), 0);
  assert.deepEqual(events.bounds(A), { oldestSeq: 1, lastSeq: 4, prunedSeq: 0 });
  assert.equal(events.deleteBefore(5, 3), 3);
  assert.deepEqual(seqs(events), [4, 5]);
  assert.deepEqual(events.bounds(A), { oldestSeq: 4, lastSeq: 4, prunedSeq: 3 });
  assert.deepEqual(events.bounds(B), { oldestSeq: 5, lastSeq: 5, prunedSeq: 2 });
  assert.equal(events.deleteBefore(5, 3), 1);
  assert.equal(events.deleteBefore(9, 3), 1);
  assert.deepEqual(seqs(events), []);
});

test('an old event after a newer one is kept', () => {
  const events = log();
  for (const at of [1, 9, 2]) events.append(A, 't', at, '');
  assert.equal(events.deleteBefore(5, 100), 1);
  assert.deepEqual(seqs(events), [2, 3]);
});

test('the count of stored events follows deletions', () => {
  const events = log(3);
  for (const at of [1, 2, 3]) events.append(A, 't', at, '');
  events.deleteBefore(3, 100);
  for (const at of [4, 5]) events.append(A, 't', at, '');
  assert.deepEqual(seqs(events), [3, 4, 5]);
  events.append(A, 't', 6, '');
  assert.deepEqual(seqs(events), [4, 5, 6]);
});

test('the events of one agent are deleted, and its last number remains known', () => {
  const events = log(2);
  for (const aid of [A, B, A]) events.append(aid, 't', 1, '');
  events.forget(A);
  assert.deepEqual(seqs(events), [2]);
  assert.deepEqual(events.bounds(A), { oldestSeq: 0, lastSeq: 3, prunedSeq: 3 });
  for (let i = 0; i < 3; i++) events.append(A, 't', 1, '');
  assert.deepEqual(seqs(events, A), [5, 6]);
});

test('the newest events are read from memory, without rolled back or deleted ones', (t) => {
  const store = Store.open(':memory:', MIGRATIONS);
  const events = new EventStore(store, 3);
  const reads = t.mock.method(store, 'all');
  const after = (seq: number): string[] => events.after(seq, 9).map((event) => `${event.seq} ${event.type}`);
  for (const type of ['a', 'b']) events.append(A, type, 1, '');
  assert.deepEqual(after(0), ['1 a', '2 b']);
  assert.deepEqual(after(1), ['2 b']);
  assert.deepEqual(events.after(0, 1).length, 1);
  assert.equal(reads.mock.callCount(), 0);
  assert.throws(
    () =>
      store.transaction(() => {
        events.append(B, 'undone', 1, '');
        throw new RangeError('rollback');
      }),
    RangeError,
  );
  assert.deepEqual(after(1), ['2 b']);
  // The number of a rolled back event is reused.
  events.append(B, 'c', 1, '');
  assert.deepEqual(after(2), ['3 c']);
  assert.deepEqual(after(1), ['2 b', '3 c'], 'an event outside the cache is read');
  for (const type of ['d', 'e']) events.append(A, type, 1, '');
  assert.deepEqual(after(0), ['2 b', '3 c', '4 d', '5 e']);
  events.forget(A);
  assert.deepEqual(after(0), ['3 c']);
  events.append(A, 'f', 1, '');
  assert.deepEqual(after(5), ['6 f']);
  store.close();
});

test('the cache equals the disk after random operations', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), aid: fc.constantFrom(A, B), undone: fc.boolean() }),
    fc.record({ kind: fc.constant('forget' as const), aid: fc.constantFrom(A, B) }),
    fc.record({ kind: fc.constant('age' as const) }),
  );
  const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const store = Store.open(':memory:', MIGRATIONS);
    const events = new EventStore(store, 5);
    for (const [i, one] of steps.entries()) {
      if (one.kind === 'forget') events.forget(one.aid);
      else if (one.kind === 'age') events.deleteBefore(i - 3, 2);
      else
        try {
          store.transaction(() => {
            events.append(one.aid, `t${i}`, i, '');
            if (one.undone) throw new RangeError();
          });
        } catch (error) {
          assert.ok(error instanceof RangeError);
        }
      const read = new EventStore(store);
      for (let seq = 0; seq <= events.lastSeq(); seq++)
        for (const limit of [1, 100]) assert.deepEqual(events.after(seq, limit), read.after(seq, limit));
    }
    store.close();
  });
  fc.assert(property, { seed: 20_261_124, numRuns: 60 });
});

test('events caused by strangers displace only each other', () => {
  const events = log();
  for (let n = 0; n < 10; n++) events.append(A, 'own', n, '');
  for (let n = 0; n < 10_000; n++) events.append(A, 'theirs', n, '', STRANGERS);
  const kept = (type: string): number[] => events.after(0, 20_000, { aid: A, types: [type] }).map(({ seq }) => seq);
  assert.deepEqual(kept('own'), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual([kept('theirs').length, kept('theirs')[0]], [2500, 7511]);
  assert.equal(events.bounds(A).prunedSeq, 7510, 'a cursor before it has missed events');
  for (let n = 0; n < 7490; n++) events.append(A, 'own', n, '');
  assert.equal(events.bounds(A).oldestSeq, 1, 'deleted events no longer count');
  events.append(A, 'own', 0, '');
  assert.equal(events.bounds(A).oldestSeq, 2);
  assert.equal(events.bounds(A).prunedSeq, 7510);
});

test('one peer that causes many events fills its share and displaces no other events', () => {
  const events = log(400);
  const [friend, other] = [testAid(3), testAid(4)];
  for (let n = 0; n < 50; n++) events.append(A, 'other', n, '', other);
  for (let n = 0; n < 5000; n++) events.append(A, 'friend', n, '', friend);
  const kept = (type: string): number => events.after(0, 1000, { aid: A, types: [type] }).length;
  assert.deepEqual([kept('other'), kept('friend')], [50, 400 * MAX_CAUSE_SHARE]);
});
