import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import {
  type Acknowledgement,
  type PublicationRow,
  PublicationStore,
  type PublisherRow,
} from '../../../src/foundation/store/publications.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const [A, B] = [testAid(1), testAid(2)];
/** Matches neither publisher. */
const NODE = testAid(3);

function world(): { store: Store; table: PublicationStore } {
  const { store } = storeWithAgents(2);
  return { store, table: new PublicationStore(store) };
}

function publisher(more: Partial<PublisherRow> = {}): PublisherRow {
  return { aid: A, seq: 0, claim: true, state: 'active', dueAt: 10, failures: 0, ...more };
}

function publication(more: Partial<PublicationRow> = {}): PublicationRow {
  const outcome = { seq: 0, publishedAt: null, replicas: 0, dirty: 1 };
  return { aid: A, type: RECORD.profile, name: '', payload: bytes(1), ttl: 60, ...outcome, ...more };
}

function acknowledged(more: Partial<Acknowledgement> = {}): Acknowledgement {
  const outcome = { seq: 4, publishedAt: 20, replicas: 3, dirty: 1, settled: true, digest: null };
  return { type: RECORD.profile, name: '', ...outcome, ...more };
}

/** `dirty` of each publication of an agent, by type. */
function dirty(table: PublicationStore, aid = A): number[] {
  return table.publications(aid).map((row) => row.dirty);
}

const dueAids = (table: PublicationStore, now: number, limit: number): Aid[] =>
  table.publishers.due(now, limit, []).map(({ item }) => item);

test('a claim creates a publisher or reactivates it immediately', () => {
  const { table } = world();
  assert.equal(table.publisher(A), null);
  table.claim(A, 10);
  assert.deepEqual(table.publisher(A), publisher());
  table.schedule(A, { claim: false, state: 'held', dueAt: 50, failures: 3 });
  assert.deepEqual(table.publisher(A), publisher({ claim: false, state: 'held', dueAt: 50, failures: 3 }));
  table.claim(A, 20);
  assert.deepEqual(table.publisher(A), publisher({ dueAt: 20 }));
  table.claim(A, 30);
  assert.equal(table.publisher(A)?.dueAt, 20, 'not postponed');
  table.claim(A, null);
  assert.equal(table.publisher(A)?.dueAt, 20);
  table.schedule(A, publisher({ dueAt: null }));
  table.claim(A, null);
  assert.equal(table.publisher(A)?.dueAt, null);
  table.claim(A, 5);
  assert.equal(table.publisher(A)?.dueAt, 5);
});

test('a claim marks the publications of a held publisher, and no others', () => {
  const { table } = world();
  for (const aid of [A, B]) {
    table.claim(aid, 1);
    table.put(aid, publication());
  }
  table.claim(A, 1);
  assert.deepEqual(dirty(table), [1]);
  table.schedule(A, publisher({ state: 'held' }));
  table.claim(A, 1);
  assert.deepEqual([dirty(table), dirty(table, B)], [[2], [1]]);
});

test('a publication is read as it was stored, and a second put marks it', () => {
  const { table } = world();
  table.claim(A, 1);
  table.put(A, publication());
  assert.deepEqual(table.publications(A), [publication()]);
  table.acknowledge(A, [acknowledged()]);
  const out = { seq: 4, publishedAt: 20, replicas: 3 };
  assert.deepEqual(table.publications(A), [publication({ ...out, dirty: 0 })]);
  table.put(A, publication({ payload: bytes(2), ttl: 61 }));
  assert.deepEqual(table.publications(A), [publication({ ...out, dirty: 1, payload: bytes(2), ttl: 61 })]);
  table.acknowledge(A, [acknowledged({ dirty: 9 })]);
  assert.deepEqual(dirty(table), [1], 'changed after it was published');
  assert.throws(() => table.put(B, publication()), /FOREIGN KEY/);
});

test('one publication is removed, and an acknowledgment does not restore it', () => {
  const { table } = world();
  table.claim(A, 1);
  for (const name of ['one', 'two']) table.put(A, publication({ type: RECORD.service, name }));
  assert.equal(table.remove(A, RECORD.service, 'three'), false);
  assert.equal(table.remove(A, RECORD.service, 'one'), true);
  assert.equal(table.remove(A, RECORD.service, 'one'), false);
  table.acknowledge(A, [acknowledged({ type: RECORD.service, name: 'one' })]);
  assert.deepEqual(
    table.publications(A).map(({ name }) => name),
    ['two'],
  );
});

test('several publishers are read together', () => {
  const { table } = world();
  for (const aid of [A, B]) {
    table.claim(aid, 10);
    table.put(aid, publication());
  }
  const { state, dueAt } = publisher();
  assert.deepEqual(table.publishersOf([A, testAid(9)]), new Map([[A, { aid: A, state, dueAt }]]));
  assert.deepEqual([...table.publishersOf([A, B]).keys()].sort(), [A, B].sort());
  table.put(A, publication({ type: RECORD.service, name: 'one' }));
  const types = [RECORD.profile, RECORD.endpoints];
  assert.deepEqual(table.publicationsOf([A, testAid(9)], types), new Map([[A, [publication()]]]));
  assert.deepEqual([...table.publicationsOf([A, B], types).keys()].sort(), [A, B].sort());
});

test('sequence numbers are assigned once, above all earlier ones and above the floor', () => {
  const { table } = world();
  assert.equal(table.reserve(A, 0, 1), null);
  table.claim(A, 1);
  assert.equal(table.reserve(A, 0, 1), 1);
  assert.equal(table.reserve(A, 0, 3), 2);
  assert.equal(table.reserve(A, 0, 1), 5);
  assert.equal(table.reserve(A, 100, 2), 101);
  assert.equal(table.publisher(A)?.seq, 102);
});

test('requested publications are due first, then the most overdue', () => {
  const { table } = world();
  const rows = [
    [1, 40, false],
    [2, 10, false],
    [3, 30, true],
    [4, 20, true],
    [5, 51, true],
    [6, 90, false],
  ] as const;
  for (const [n, dueAt, claim] of rows) {
    table.claim(testAid(n), 1);
    table.schedule(testAid(n), publisher({ claim, dueAt }));
  }
  table.claim(testAid(7), null);
  const due = (now: number, limit: number) => dueAids(table, now, limit);
  assert.deepEqual(due(50, 9), [4, 3, 2, 1].map(testAid));
  assert.deepEqual(due(50, 3), [4, 3, 2].map(testAid));
  assert.deepEqual(due(50, 2), [4, 3].map(testAid));
  assert.deepEqual(due(10, 1), [testAid(2)]);
  assert.deepEqual(
    [50, 51, 89, 90].map((at) => table.publishers.nextDue(at)),
    [51, 90, 90, null],
  );
});

test('after a start, waiting publishers are due again', () => {
  const { table } = world();
  for (const aid of [A, B]) table.claim(aid, null);
  table.schedule(B, publisher({ state: 'held', dueAt: null }));
  table.resume(7);
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, null]);
  table.resume(9);
  assert.equal(table.publisher(A)?.dueAt, 7);
});

test('after the clock was set back, records published in the future are published again', () => {
  const { table } = world();
  const states = [
    // Correct times: unchanged.
    { n: 1, state: 'active', publishedAt: 90, dueAt: 120 },
    // Published in the future.
    { n: 2, state: 'active', publishedAt: 200, dueAt: 230 },
    // Correct time of publication, but due after half of its lifetime.
    { n: 3, state: 'active', publishedAt: 90, dueAt: 31_000 },
    { n: 4, state: 'active', publishedAt: null, dueAt: 120 },
    { n: 6, state: 'held', publishedAt: 200, dueAt: 230 },
    { n: 7, state: 'active', publishedAt: 200, dueAt: 80 },
  ] as const;
  for (const { n, state, publishedAt, dueAt } of states) {
    const aid = testAid(n);
    table.claim(aid, 1);
    table.put(aid, publication());
    if (publishedAt !== null) table.acknowledge(aid, [acknowledged({ publishedAt })]);
    table.schedule(aid, publisher({ state, dueAt }));
  }
  table.repairTimes(100);
  assert.deepEqual(
    states.map(({ n }) => [table.publisher(testAid(n))?.dueAt, ...dirty(table, testAid(n))]),
    [
      [120, 0],
      [100, 1],
      [100, 0],
      [100, 1],
      [230, 1],
      [80, 1],
    ],
  );
});

test('published endpoint records are marked, of one publisher or of all with another digest', () => {
  const { table } = world();
  for (const aid of [A, B]) {
    table.claim(aid, 50);
    table.put(aid, publication({ type: RECORD.endpoints }));
    table.put(aid, publication());
  }
  table.touchEndpoints(A, 5);
  assert.deepEqual(dirty(table), [1, 1], 'none is published');
  assert.equal(table.publisher(A)?.dueAt, 5, 'but it must be published');
  for (const aid of [A, B]) {
    table.acknowledge(aid, [acknowledged(), acknowledged({ type: RECORD.endpoints, digest: 'here' })]);
    table.schedule(aid, publisher({ dueAt: aid === A ? null : 50 }));
  }
  const endpoints = (aid: typeof A) => table.publications(aid).find(({ type }) => type === RECORD.endpoints)?.dirty;
  table.touchEndpoints(A, 7);
  assert.deepEqual([endpoints(A), endpoints(B)], [1, 0]);
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, 50]);
  table.touchMoved('here', 6, NODE);
  assert.deepEqual([endpoints(A), endpoints(B)], [1, 0], 'all have this digest');
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, 50]);
  table.clearOtherDigest(B, 'here');
  table.touchMoved('he', 6, NODE);
  assert.deepEqual([endpoints(A), endpoints(B)], [1, 0], 'all digests have this prefix');
  table.clearOtherDigest(B, 'there');
  table.touchMoved('here', 60, NODE);
  assert.deepEqual([endpoints(A), endpoints(B)], [1, 1], 'only records with an unknown digest');
  table.touchMoved('there', 60, NODE);
  assert.deepEqual([endpoints(A), endpoints(B)], [2, 2]);
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, 50]);
  assert.deepEqual(dirty(table), [2, 0], 'only endpoints');
  table.touch(A);
  assert.deepEqual(
    [dirty(table), dirty(table, B)],
    [
      [3, 1],
      [2, 0],
    ],
  );
});

test('all published records are marked after the network lost them', () => {
  const { table } = world();
  table.claim(A, 50);
  table.claim(B, 50);
  table.put(A, publication({ type: RECORD.endpoints }));
  table.put(A, publication());
  table.put(B, publication());
  table.acknowledge(A, [acknowledged(), acknowledged({ type: RECORD.endpoints, publishedAt: 21 })]);
  const kept = (now: number, until: number) => table.newestSettled(now, until, 10).map(({ type }) => type);
  assert.deepEqual(kept(100, 20 + 60_000 - 1), [RECORD.endpoints, publication().type], 'the newest one first');
  assert.deepEqual(table.newestSettled(100, 200, 1), [{ aid: A, type: RECORD.endpoints, name: '', seq: 4 }]);
  assert.deepEqual(kept(20, 100), [publication().type]);
  assert.deepEqual(kept(100, 21 + 60_000), [], 'expired by then');
  assert.deepEqual(kept(19, 100), [], 'from the future');
  table.touchAll(7);
  assert.deepEqual([dirty(table), dirty(table, B)], [[1, 1], [1]]);
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, 50]);
  assert.deepEqual(kept(100, 200), [], 'marked already');
});

test('simultaneously overdue renewals are spread, and others are not', () => {
  const { table } = world();
  const half = { claim: false, state: 'active', failures: 0 } as const;
  const now = 100_000;
  const states = [
    // Expires at 140 and 160 s.
    { n: 1, publishedAt: 80_000, dueAt: 90_000, more: {} },
    { n: 2, publishedAt: 100_000, dueAt: 95_000, more: {} },
    // Not due; expired; failed; requested; held.
    { n: 3, publishedAt: 90_000, dueAt: 100_001, more: {} },
    { n: 4, publishedAt: 40_000, dueAt: 90_000, more: {} },
    { n: 5, publishedAt: 80_000, dueAt: 90_000, more: { failures: 1 } },
    { n: 6, publishedAt: 80_000, dueAt: 90_000, more: { claim: true } },
    { n: 7, publishedAt: 80_000, dueAt: 90_000, more: { state: 'held' } },
    // From the future; never published.
    { n: 8, publishedAt: 100_001, dueAt: 90_000, more: {} },
    { n: 9, publishedAt: null, dueAt: 90_000, more: {} },
  ] as const;
  for (const { n, publishedAt, dueAt, more } of states) {
    const aid = testAid(n);
    table.claim(aid, 1);
    table.put(aid, publication());
    if (publishedAt !== null) table.acknowledge(aid, [acknowledged({ publishedAt })]);
    table.schedule(aid, { ...half, dueAt, ...more });
  }
  const times = () => states.map(({ n }) => table.publisher(testAid(n))?.dueAt);
  table.spreadOverdue(now, 0.25);
  // A quarter of the remaining time, and half of that for the first of the two.
  assert.deepEqual(times(), [105_000, 115_000, 100_001, 90_000, 90_000, 90_000, 90_000, 90_000, 90_000]);
  table.put(testAid(1), publication());
  table.spreadOverdue(110_000, 0.25);
  assert.equal(times()[0], 105_000, 'changed');
});

test('records that fewer nodes store than possible are marked', () => {
  const { table } = world();
  for (const aid of [A, B]) {
    table.claim(aid, 50);
    table.put(aid, publication());
    table.acknowledge(aid, [acknowledged({ settled: aid === B })]);
  }
  table.touchUnsettled(7);
  assert.deepEqual([dirty(table), dirty(table, B)], [[1], [0]]);
  assert.deepEqual([table.publisher(A)?.dueAt, table.publisher(B)?.dueAt], [7, 50]);
});

test('agents without an endpoint record get one, once, and it is deleted with them', () => {
  const { store, table } = world();
  table.claim(A, 3);
  table.put(A, publication({ type: RECORD.endpoints }));
  assert.equal(table.createMissingEndpoints(9, 77), 1);
  assert.deepEqual(table.publications(A).length, 1);
  assert.deepEqual(table.publisher(B), publisher({ aid: B, dueAt: 9 }));
  assert.deepEqual(table.publications(B), [
    publication({ aid: B, type: RECORD.endpoints, payload: new Uint8Array(), ttl: 77 }),
  ]);
  assert.equal(table.createMissingEndpoints(9, 77), 0);
  new AgentStore(store).delete(B);
  assert.deepEqual([table.publisher(B), table.publications(B)], [null, []]);
});

test('a transaction of publications is rolled back by an error and returns its result', () => {
  const { table } = world();
  assert.throws(() =>
    table.transaction(() => {
      table.claim(A, 1);
      throw new Error('no');
    }),
  );
  assert.equal(
    table.transaction(() => table.publisher(A)),
    null,
  );
});

test('after a move of the node, its own record is due before all others that name it', () => {
  const { table } = world();
  for (const aid of [A, B]) {
    table.claim(aid, 50);
    table.put(aid, publication({ type: RECORD.endpoints }));
    table.acknowledge(aid, [acknowledged({ type: RECORD.endpoints, digest: 'here' })]);
    table.schedule(aid, publisher({ claim: false, dueAt: aid === A ? 10 : 50 }));
  }
  table.touchMoved('there', 60, B);
  assert.deepEqual(dueAids(table, 60, 2), [B, A]);
  table.touchMoved('here', 60, NODE);
  assert.deepEqual(dueAids(table, 60, 2), [B, A]);
});
