import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { type NewNote, NoteStore, noteSize } from '../../../src/foundation/store/notes.ts';
import type { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const [A, B] = [testAid(1), testAid(2)];
const SENDER = testAid(50);
/** Size of a note of `add`: 44 bytes of body and 256 for the row. */
const SIZE = 300;

function world(): { store: Store; notes: NoteStore } {
  const { store } = storeWithAgents(2);
  return { store, notes: new NoteStore(store) };
}

function note(n: number, more: Partial<NewNote> = {}): NewNote {
  const parts = { body: bytes(n, 44), digest: bytes(n, 8), token: bytes(n + 100) };
  const times = { sentAt: 10 + n, receivedAt: 20 + n };
  return { aid: A, messageId: bytes(n, 32), sender: SENDER, msgType: n, ...parts, ...times, ...more };
}

/** The attempt for a content of agent A, after it is on disk. */
async function attempted(
  notes: NoteStore,
  content: number,
  fresh: { nonce: Uint8Array; sentAt: number },
  since: number,
) {
  return await notes.attempt(A, bytes(content), fresh, since);
}

function fill(notes: NoteStore, count: number): void {
  for (let n = 1; n <= count; n++) assert.equal(notes.add(note(n), 1000 + n), true);
}

/** The types of notes, which identify them here. */
function types(found: readonly { msgType: number }[]): number[] {
  return found.map(({ msgType }) => msgType);
}

test('a note is read as it was added, once', () => {
  const { notes } = world();
  assert.equal(notes.add(note(1), 1000), true);
  assert.equal(notes.add(note(1, { body: bytes(9, 9) }), 1000), false);
  assert.equal(notes.add(note(1, { aid: testAid(9) }), 1000), false, 'an unknown agent');
  assert.deepEqual(notes.page(A, 0, 9, 1e6), { notes: [{ ...note(1), id: 1 }], more: false });
  assert.deepEqual(notes.all(A), [{ ...note(1), id: 1 }]);
  assert.deepEqual([notes.seen(A, bytes(1, 32)), notes.isStored(A, bytes(1, 32))], [true, true]);
  assert.deepEqual([notes.seen(A, bytes(2, 32)), notes.isStored(A, bytes(2, 32))], [false, false]);
  assert.equal(notes.seen(testAid(9), bytes(1, 32)), false);
  assert.equal(notes.add(note(1, { aid: B }), 1000), true, 'each agent has its own notes');
});

test('a seen note is not added again until its ID expires', () => {
  const { notes } = world();
  notes.markSeen(A, bytes(1, 32), 50);
  notes.markSeen(A, bytes(1, 32), 99);
  assert.equal(notes.add(note(1), 1000), false);
  notes.add(note(2), 40);
  notes.add(note(3), 60);
  assert.deepEqual(notes.seenOf(A, 9), [
    { aid: A, messageId: bytes(3, 32), until: 60, isKnown: false },
    { aid: A, messageId: bytes(1, 32), until: 50, isKnown: false },
    { aid: A, messageId: bytes(2, 32), until: 40, isKnown: false },
  ]);
  assert.equal(notes.seenOf(A, 2).length, 2);
  assert.equal(notes.purgeSeen(40, 1), false);
  assert.equal(notes.purgeSeen(60, 1), true);
  assert.equal(notes.purgeSeen(60, 2), false);
  assert.deepEqual([notes.seen(A, bytes(1, 32)), notes.seen(A, bytes(3, 32))], [false, true]);
});

test('the load of a mailbox counts pending notes, in total or of one sender', () => {
  const { notes } = world();
  assert.equal(noteSize(bytes(1, 44)), SIZE);
  fill(notes, 2);
  notes.add(note(3, { sender: testAid(51), body: bytes(3, 144) }), 1000);
  notes.add(note(4, { aid: B }), 1000);
  assert.deepEqual(notes.load(A), { count: 3, bytes: 3 * SIZE + 100 });
  assert.deepEqual(notes.load(A, SENDER), { count: 2, bytes: 2 * SIZE });
  assert.deepEqual(notes.load(testAid(9)), { count: 0, bytes: 0 });
  notes.take(A, 1, 1e6, 5);
  assert.deepEqual(notes.load(A, SENDER), { count: 1, bytes: SIZE });
  assert.deepEqual(
    notes.pendingCounts(),
    new Map<Aid, number>([
      [A, 2],
      [B, 1],
    ]),
  );
});

test('a page has as many notes as fit its count and bytes, at least one, and reports whether more follow', () => {
  const { notes } = world();
  fill(notes, 4);
  const page = (after: number, limit: number, maxBytes: number) => {
    const found = notes.page(A, after, limit, maxBytes);
    return [...types(found.notes), found.more];
  };
  assert.deepEqual(page(0, 9, 1e6), [1, 2, 3, 4, false]);
  assert.deepEqual(page(0, 4, 1e6), [1, 2, 3, 4, false]);
  assert.deepEqual(page(0, 3, 1e6), [1, 2, 3, true]);
  assert.deepEqual(page(1, 9, 2 * SIZE), [2, 3, true]);
  assert.deepEqual(page(1, 9, 2 * SIZE - 1), [2, true]);
  assert.deepEqual(page(3, 9, 1), [4, false]);
  assert.deepEqual(page(4, 9, 1e6), [false]);
});

test('delivered notes become pending again or are deleted', () => {
  const { notes } = world();
  fill(notes, 4);
  const taken = notes.take(A, 2, 1e6, 5);
  assert.deepEqual([types(taken.notes), taken.more], [[1, 2], true]);
  assert.deepEqual(types(notes.page(A, 0, 9, 1e6).notes), [3, 4]);
  assert.deepEqual(types(notes.all(A)), [1, 2, 3, 4]);
  notes.discard([1, 3]);
  assert.deepEqual(types(notes.all(A)), [2, 3, 4], 'pending notes are not deleted');
  notes.requeue([2]);
  assert.deepEqual(types(notes.take(A, 2, 1e6, 6).notes), [2, 3]);
  assert.equal(notes.requeueAll(), 2);
  assert.equal(notes.requeueAll(), 0);
  assert.deepEqual(types(notes.page(A, 0, 9, 1e6).notes), [2, 3, 4]);
  assert.deepEqual([notes.isStored(A, bytes(1, 32)), notes.isStored(A, bytes(2, 32))], [false, true]);
});

test('an attempt keeps its number until it ends or is too old', async () => {
  const { notes } = world();
  const fresh = (n: number, sentAt: number) => ({ nonce: bytes(n), sentAt });
  assert.deepEqual(await attempted(notes, 1, fresh(1, 10), 0), fresh(1, 10));
  assert.deepEqual(await attempted(notes, 1, fresh(2, 20), 10), fresh(1, 10));
  assert.deepEqual(await attempted(notes, 2, fresh(3, 20), 0), fresh(3, 20));
  assert.deepEqual(await attempted(notes, 1, fresh(4, 30), 11), fresh(4, 30));
  notes.endAttempt(A, bytes(1));
  assert.deepEqual(await attempted(notes, 1, fresh(5, 40), 0), fresh(5, 40));
  assert.deepEqual(await attempted(notes, 2, fresh(6, 50), 0), fresh(3, 20));
});

test('a mailbox is deleted with its agent', async () => {
  const { store, notes } = world();
  fill(notes, 1);
  notes.add(note(1, { aid: B }), 1000);
  await attempted(notes, 1, { nonce: bytes(1), sentAt: 1 }, 0);
  new AgentStore(store).delete(A);
  assert.deepEqual([notes.all(A), notes.seenOf(A, 9), notes.all(B).length], [[], [], 1]);
});

test('a transaction of notes is rolled back by an error and returns its result', () => {
  const { notes } = world();
  assert.throws(() =>
    notes.transaction(() => {
      fill(notes, 1);
      throw new Error('no');
    }),
  );
  assert.equal(
    notes.transaction(() => notes.seen(A, bytes(1, 32))),
    false,
  );
});

test('a damaged note is skipped and reported once; other notes, and those without a checksum, are read', () => {
  const { store, notes } = world();
  const reported: string[] = [];
  store.onDamage((row) => reported.push(row));
  fill(notes, 3);
  store.run`UPDATE notes SET body = x'00' WHERE id = 2`;
  store.run`UPDATE notes SET body = x'00', sum = NULL WHERE id = 3`;
  const ids = (found: readonly { id: number }[]): number[] => found.map(({ id }) => id);
  assert.deepEqual(ids(notes.page(A, 0, 9, 1e6).notes), [1, 3]);
  assert.equal(notes.all(A).length, 2);
  assert.deepEqual(ids(notes.take(A, 9, 1e6, 5).notes), [1, 3]);
  assert.deepEqual(reported, ['notes 2']);
});

test('note IDs of strangers are evicted first, with a limit per agent', () => {
  const { store, notes } = world();
  const id = (n: number): Uint8Array => Buffer.alloc(32, `note ${n}`);
  store.transaction(() => {
    for (let n = 0; n < 10; n++) notes.markSeen(A, id(n), n, true);
    for (let n = 10; n < 120_000; n++) notes.markSeen(A, id(n), n);
  });
  assert.deepEqual(
    [0, 9, 10, 119_999].map((n) => notes.seen(A, id(n))),
    [true, true, false, true],
  );
  const rows = Number(store.one('SELECT count(*) AS n FROM notes_seen')?.['n']);
  assert.ok(rows <= 110_000, `${rows} rows`);
  store.close();
});
