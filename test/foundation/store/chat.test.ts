import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { ChatStore, type PairRow, type Relationship } from '../../../src/foundation/store/chat.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import type { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const [A, B] = [testAid(1), testAid(2)];

const NOTHING: Relationship = {
  state: 'none',
  since: 0,
  note: '',
  expiresAt: null,
  origin: null,
  outStream: null,
  acked: 0,
  ackedId: null,
  inStream: null,
  control: null,
  controlUntil: null,
  goneOut: null,
  goneIn: null,
};

function world(): { store: Store; chat: ChatStore; log: ChatLog } {
  const { store } = storeWithAgents(2);
  return { store, chat: new ChatStore(store), log: new ChatLog(store) };
}

function empty(id: number, aid: Aid, peer: Aid, since: number): PairRow {
  const marks = { lastSeq: 0, lastAt: null, readCursor: 0, unread: 0, unreadBytes: 0, queued: 0, queuedBytes: 0 };
  return { ...NOTHING, ...marks, receivedId: null, id, aid, peer, since };
}

/** Creates the pair of A and peer number `n` in the given state. */
function pair(chat: ChatStore, n: number, more: Partial<Relationship> = {}, aid = A): number {
  const { id } = chat.open(aid, testAid(n), n) ?? assert.fail();
  chat.setRelationship(id, { ...NOTHING, since: n, ...more });
  return id;
}

function output(log: ChatLog, id: number, at: number): void {
  log.queue(id, { id: bytes(at), at, text: 'x', file: null });
}

function peers(rows: readonly PairRow[]): number[] {
  return rows.map(({ since }) => since);
}

test('a pair is created once, and only for local agents', () => {
  const { store, chat } = world();
  assert.equal(chat.pair(A, B), null);
  assert.deepEqual(chat.open(A, B, 5), empty(1, A, B, 5));
  assert.deepEqual(chat.open(A, B, 9), empty(1, A, B, 5));
  const other = chat.open(B, A, 9) ?? assert.fail();
  assert.deepEqual(other, empty(other.id, B, A, 9));
  assert.equal(chat.open(testAid(9), A, 1), null);
  assert.deepEqual([chat.byId(other.id), chat.byId(99)], [other, null]);
  new AgentStore(store).delete(A);
  assert.deepEqual([chat.byId(1), chat.all(B).length], [null, 1]);
});

test('a relationship is read as it was stored', () => {
  const { chat } = world();
  const id = pair(chat, 5);
  pair(chat, 6);
  const full: Relationship = {
    state: 'in_pending',
    since: 1,
    note: 'hello',
    expiresAt: 2,
    origin: '10.0.0.0/24',
    outStream: bytes(3),
    acked: 4,
    ackedId: bytes(6),
    inStream: bytes(5),
    control: 'accept',
    controlUntil: 7,
    goneOut: bytes(8),
    goneIn: bytes(9),
  };
  chat.setRelationship(id, full);
  assert.deepEqual(chat.byId(id), { ...empty(id, A, testAid(5), 0), ...full });
  assert.deepEqual(chat.pair(A, testAid(6)), empty(2, A, testAid(6), 6));
});

test('only an empty pair is deleted', () => {
  const { chat, log } = world();
  const kept = [pair(chat, 3, { state: 'friends' }), pair(chat, 4, { control: 'gone' }), pair(chat, 5)];
  output(log, kept[2] ?? 0, 9);
  const gone = pair(chat, 6);
  for (const id of [...kept, gone]) chat.deleteIfEmpty(id);
  assert.deepEqual(new Set(chat.all(A).map(({ id }) => id)), new Set(kept));
});

test('pairs are found by state, in the required order', () => {
  const { chat, log } = world();
  pair(chat, 30, { state: 'friends' });
  const talking = pair(chat, 10, { state: 'friends' });
  pair(chat, 20, { state: 'friends' });
  pair(chat, 25, { state: 'blocked' });
  pair(chat, 26, { state: 'friends' }, B);
  output(log, talking, 28);
  assert.deepEqual(peers(chat.all(A)), [30, 10, 25, 20]);
  assert.deepEqual(peers(chat.inState(A, 'friends')), [10, 20, 30]);
  assert.deepEqual([chat.count(A, 'friends'), chat.count(A, 'none')], [3, 0]);
  assert.deepEqual(peers(chat.recentFriends(26, 9)), [30, 10, 26]);
  assert.deepEqual(peers(chat.recentFriends(27, 1)), [30]);
});

test('open requests have their source', () => {
  const { chat } = world();
  pair(chat, 7, { state: 'in_pending', origin: 'x' });
  pair(chat, 5, { state: 'in_pending', origin: 'x' });
  pair(chat, 6, { state: 'in_pending', origin: 'y' });
  pair(chat, 4, { state: 'friends', origin: 'x' });
  pair(chat, 5, { state: 'in_pending', origin: 'x' }, B);
  assert.deepEqual(chat.requestSources(A).sort(), ['x', 'x', 'y']);
  assert.deepEqual(chat.inviters(A, 9), [5, 6, 7].map(testAid));
  assert.deepEqual(chat.inviters(A, 1), [testAid(5)]);
});

test('pairs with a control message or queued entries are found', () => {
  const { chat, log } = world();
  const word = pair(chat, 3, { control: 'request' });
  const queued = pair(chat, 4);
  output(log, queued, 1);
  pair(chat, 5);
  const other = pair(chat, 3, { control: 'gone' }, B);
  const ids = (rows: readonly PairRow[]) => rows.map(({ id }) => id);
  assert.deepEqual(new Set(ids(chat.pendingPairsOf(A))), new Set([word, queued]));
  assert.deepEqual(ids(chat.pendingPairs(0, 9)), [word, queued, other]);
  assert.deepEqual(ids(chat.pendingPairs(word, 1)), [queued]);
});

test('expired requests and control messages are found, each pair once', () => {
  const { chat } = world();
  pair(chat, 3, { expiresAt: 10, controlUntil: 10 });
  pair(chat, 4, { controlUntil: 9 });
  pair(chat, 5, { expiresAt: 11 });
  pair(chat, 6);
  assert.deepEqual(peers(chat.overdue(10, 9)), [3, 4]);
  assert.deepEqual(new Set(peers(chat.overdue(11, 9))), new Set([3, 4, 5]));
  assert.equal(chat.overdue(11, 1).length, 2, 'one of each');
});

test('counters include only agents with requests or unread entries', () => {
  const { chat, log } = world();
  const content = (n: number) => ({ id: bytes(n), at: 1, text: 'x', file: null });
  assert.deepEqual(chat.counters(), new Map());
  for (const n of [3, 4]) {
    const row = chat.byId(pair(chat, n, { state: 'friends' })) ?? assert.fail();
    log.receive(row, [content(1), content(n)], bytes(n), 1);
  }
  pair(chat, 5, { state: 'in_pending' });
  assert.deepEqual(chat.counters(), new Map([[A, { invites: 1, unread: 4 }]]));
  pair(chat, 5, { state: 'in_pending' }, B);
  assert.deepEqual(chat.counters().get(B), { invites: 1, unread: 0 });
});

test('a transaction of chats is rolled back by an error and returns its result', () => {
  const { chat } = world();
  assert.throws(() =>
    chat.transaction(() => {
      pair(chat, 3);
      throw new Error('no');
    }),
  );
  assert.deepEqual(
    chat.commit(() => chat.all(A), 'soon'),
    [],
  );
});
