import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChatStore } from '../../../src/foundation/store/chat.ts';
import {
  type ChatContent,
  type ChatEntry,
  ChatLog,
  DAMAGED_TEXT,
  entryBytes,
} from '../../../src/foundation/store/chat-log.ts';
import { testAid } from '../../support/agents.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const [A, B] = [testAid(1), testAid(2)];
/** Bytes of an entry with three letters: a row counts as 128. */
const SIZE = 131;
const FILE = { objectId: 'ab'.repeat(32), name: 'ä.txt', size: 7 };

function content(n: number, more: Partial<ChatContent> = {}): ChatContent {
  return { id: bytes(n), at: 10 + n, text: 'abc', file: null, ...more };
}

function world() {
  const { store } = storeWithAgents(1);
  const chat = new ChatStore(store);
  const id = (chat.open(A, B, 1) ?? assert.fail()).id;
  const other = (chat.open(A, testAid(3), 1) ?? assert.fail()).id;
  const pair = () => chat.byId(id) ?? assert.fail();
  return { store, chat, log: new ChatLog(store), id, other, pair };
}

function seqs(entries: readonly ChatEntry[]): number[] {
  return entries.map(({ seq }) => seq);
}

test('an entry uses the bytes of its texts and its row', () => {
  assert.equal(entryBytes(content(1)), SIZE);
  assert.equal(entryBytes(content(1, { text: null, file: FILE })), 128 + 6);
  assert.equal(entryBytes(content(1, { text: 'ü', file: FILE })), 128 + 2 + 6);
});

test('a queued entry is in the log, in the queue and in the counters of the pair', () => {
  const { log, id, other, pair } = world();
  assert.equal(log.queue(id, content(1)), 1);
  assert.equal(log.queue(id, content(2, { text: null, file: FILE })), 2);
  log.queue(other, content(1));
  const first: ChatEntry = { ...content(1), seq: 1, incoming: false, status: 'queued' };
  const second: ChatEntry = { ...content(2, { text: null, file: FILE }), seq: 2, incoming: false, status: 'queued' };
  assert.deepEqual([log.entry(id, 1), log.entry(id, 3)], [first, null]);
  assert.deepEqual(log.queued(id, 0, 9, 1e6), [first, second]);
  assert.deepEqual(log.newest(id, 9), [second, first]);
  assert.deepEqual(log.newest(id, 1), [second]);
  const { lastSeq, lastAt, queued, queuedBytes, unread } = pair();
  assert.deepEqual([lastSeq, lastAt, queued, queuedBytes, unread], [2, 12, 2, SIZE + 134, 0]);
});

test('a received entry is in the log once and is unread', () => {
  const { log, id, pair } = world();
  assert.deepEqual(log.receive(pair(), [], content(1).id, 90), []);
  assert.deepEqual([pair().receivedId, pair().lastAt], [content(1).id, null]);
  assert.deepEqual(log.receive(pair(), [content(1), content(2)], content(2).id, 90), [1, 2]);
  assert.deepEqual(log.receive(pair(), [content(2), content(3)], content(3).id, 95), [3]);
  assert.deepEqual(log.receive(pair(), [content(3)], content(3).id, 99), []);
  assert.deepEqual(log.entry(id, 1), { ...content(1), seq: 1, incoming: true, status: 'received' });
  const { lastSeq, lastAt, receivedId, unread, unreadBytes, queued } = pair();
  assert.deepEqual([lastSeq, lastAt, receivedId], [3, 95, content(3).id]);
  assert.deepEqual([unread, unreadBytes, queued], [3, 3 * SIZE, 0]);
  log.queue(id, content(4));
  assert.deepEqual(
    [1, 4, 5].map((n) => [log.hasReceived(id, content(n).id), log.placeOfOwn(id, content(n).id)]),
    [
      [true, 0],
      [false, 4],
      [false, 0],
    ],
  );
});

test('the read cursor moves forward only, and entries up to it are read', () => {
  const { log, id, pair } = world();
  log.receive(pair(), [content(1)], null, 1);
  log.queue(id, content(2));
  log.receive(pair(), [content(3), content(4)], null, 1);
  assert.deepEqual(log.markRead(id, 2), { readCursor: 2, unread: 2 });
  assert.deepEqual(log.markRead(id, 1), { readCursor: 2, unread: 2 });
  assert.deepEqual(log.markRead(id, 3), { readCursor: 3, unread: 1 });
  assert.equal(pair().unreadBytes, SIZE);
  assert.deepEqual(log.markRead(id, 99), { readCursor: 4, unread: 0 });
  assert.deepEqual(log.markRead(77, 1), { readCursor: 0, unread: 0 });
});

test('a queue is sent from its start, and lost entries are queued again', () => {
  const { log, id, pair } = world();
  for (const n of [1, 2, 3]) log.queue(id, content(n));
  const states = () => log.page(id, 0, 9, 1e6).entries.map(({ status }) => status);
  assert.equal(log.markSent(id, 2), 2);
  assert.deepEqual(states(), ['sent', 'sent', 'queued']);
  assert.deepEqual([pair().acked, pair().ackedId], [2, content(2).id]);
  assert.deepEqual([pair().queued, pair().queuedBytes], [1, SIZE]);
  assert.deepEqual(seqs(log.queued(id, 0, 9, 1e6)), [3]);
  log.requeue(id, 0, 1);
  assert.deepEqual(states(), ['sent', 'queued', 'queued']);
  assert.deepEqual([pair().acked, pair().ackedId], [1, null], 'the entries before it may be lost too');
  assert.deepEqual([pair().queued, pair().queuedBytes], [2, 2 * SIZE]);
  assert.equal(log.markSent(id, 9), 3);
  assert.equal(log.markSent(id, 9), 0);
  assert.deepEqual([pair().acked, pair().queued, pair().queuedBytes], [3, 0, 0]);
  log.requeue(id, 1, 9);
  assert.deepEqual(states(), ['sent', 'queued', 'queued']);
  assert.deepEqual([pair().acked, pair().ackedId], [1, content(1).id]);
  log.markSent(id, 9);
  log.queue(id, content(4));
  log.dropQueued(id);
  assert.deepEqual(states(), ['sent', 'sent', 'sent', 'dropped']);
  assert.deepEqual([pair().queued, pair().queuedBytes], [0, 0]);
});

test('a batch of a queue is limited in count and bytes, but has at least one entry', () => {
  const { log, id } = world();
  for (const n of [1, 2, 3]) log.queue(id, content(n));
  assert.deepEqual(seqs(log.queued(id, 0, 2, 1e6)), [1, 2]);
  assert.deepEqual(seqs(log.queued(id, 1, 9, 2 * SIZE)), [2, 3]);
  assert.deepEqual(seqs(log.queued(id, 1, 9, 2 * SIZE - 1)), [2]);
  assert.deepEqual(seqs(log.queued(id, 2, 9, 1)), [3]);
  assert.deepEqual(log.queued(id, 3, 9, 1), []);
});

test('a page is limited in count and bytes, has at least one entry, and reports whether more follow', () => {
  const { log, id } = world();
  for (const n of [1, 2, 3]) log.queue(id, content(n));
  const page = (after: number, limit: number, maxBytes: number) => {
    const { entries, more } = log.page(id, after, limit, maxBytes);
    return [...seqs(entries), more];
  };
  assert.deepEqual(page(0, 3, 1e6), [1, 2, 3, false]);
  assert.deepEqual(page(0, 2, 1e6), [1, 2, true]);
  assert.deepEqual(page(1, 9, 2 * SIZE), [2, 3, false]);
  assert.deepEqual(page(0, 9, 2 * SIZE), [1, 2, true]);
  assert.deepEqual(page(0, 9, 1), [1, true]);
  assert.deepEqual(page(3, 9, 1), [false]);
});

test('an imported chat has its entries and positions', () => {
  const { log, id, pair } = world();
  const entries: ChatEntry[] = [
    { ...content(1), seq: 4, incoming: true, status: 'received' },
    { ...content(2), seq: 5, incoming: false, status: 'sent' },
    { ...content(3), seq: 6, incoming: false, status: 'dropped' },
    { ...content(4), seq: 7, incoming: false, status: 'queued' },
    { ...content(5, { file: FILE }), seq: 8, incoming: true, status: 'received' },
  ];
  log.restore(id, entries, { lastSeq: 9, lastAt: 50, receivedId: content(5).id });
  assert.deepEqual(log.page(id, 0, 9, 1e6), { entries, more: false });
  const { lastSeq, lastAt, unread, unreadBytes, queued, queuedBytes } = pair();
  assert.deepEqual([lastSeq, lastAt, unread, unreadBytes, queued, queuedBytes], [9, 50, 2, 2 * SIZE + 6, 1, SIZE]);
  assert.deepEqual(pair().receivedId, content(5).id);
});

test('the newest entries before a position are limited in count and bytes, oldest first', () => {
  const { log, id } = world();
  for (const n of [1, 2, 3, 4, 5]) log.queue(id, content(n));
  const before = (seq: number, limit: number, maxBytes: number) => {
    const { entries, more } = log.pageBefore(id, seq, limit, maxBytes);
    return [seqs(entries), more];
  };
  assert.deepEqual(before(99, 2, 1e6), [[4, 5], true]);
  assert.deepEqual(before(4, 9, 1e6), [[1, 2, 3], false]);
  assert.deepEqual(before(5, 9, 2 * SIZE), [[3, 4], true]);
  assert.deepEqual(before(5, 9, 1), [[4], true]);
  assert.deepEqual(before(1, 9, 1e6), [[], false]);
});

test('a damaged entry is skipped and reported once; other entries, and those without a checksum, are read', () => {
  const { store, log, id, pair } = world();
  const reported: string[] = [];
  store.onDamage((row) => reported.push(row));
  for (let n = 1; n <= 4; n++) log.queue(id, content(n, { file: FILE }));
  assert.equal(pair().lastSeq, 4);
  store.run`UPDATE chat_entries SET text = 'abd' WHERE pair = ${id} AND seq = 2`;
  store.run`UPDATE chat_entries SET name = 'b', sum = NULL WHERE pair = ${id} AND seq = 3`;
  store.run`UPDATE chat_entries SET status = 2 WHERE pair = ${id} AND seq = 4`;
  assert.deepEqual(seqs(log.page(id, 0, 9, 1e6).entries), [1, 3, 4]);
  assert.deepEqual(seqs(log.pageBefore(id, 9, 9, 1e6).entries), [1, 3, 4]);
  assert.deepEqual(seqs(log.newest(id, 2)), [4, 3]);
  assert.equal(log.entry(id, 2), null);
  assert.deepEqual(log.page(id, 0, 2, 1e6).more, true);
  const shown = log.queued(id, 0, 9, 1e6).map(({ seq, text, file }) => [seq, text === DAMAGED_TEXT, file === null]);
  assert.deepEqual(shown, [
    [1, false, false],
    [2, true, true],
    [3, false, false],
  ]);
  assert.deepEqual(reported, [`chat_entries ${id} 2`]);
});
