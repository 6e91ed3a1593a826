/** Effects of received frames on a conversation, and the replies. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import {
  MAX_INVITES,
  MAX_INVITES_OF_STRANGERS,
  MAX_INVITES_PER_NETWORK,
  MAX_INVITES_PER_SOURCE,
  MAX_UNREAD,
  MAX_UNREAD_BYTES,
  processFrames,
} from '../../../src/capabilities/chat/exchange.ts';
import type { Answer } from '../../../src/capabilities/chat/relationship.ts';
import { ChatSession } from '../../../src/capabilities/chat/session.ts';
import type { Frame } from '../../../src/capabilities/chat/wire.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { ChatStore, type Relationship } from '../../../src/foundation/store/chat.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { asLink } from '../../../src/network/links/stream.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const OURS = new Uint8Array(16).fill(1);
const THEIRS = new Uint8Array(16).fill(2);
const FRIENDS: Partial<Relationship> = { state: 'friends', outStream: OURS, inStream: THEIRS };

function setUp() {
  const clock = new TestClock();
  const db = Store.open(':memory:', MIGRATIONS);
  const [store, entries] = [new ChatStore(db), new ChatLog(db)];
  const reported: string[] = [];
  const events = { emit: (_: Aid, type: string) => reported.push(type) };
  const known = new Set<Aid>();
  const deps = { store, entries, events, clock, isKnown: (_: Aid, peer: Aid) => known.has(peer) };
  const { aid, delegation } = newIdentity();
  new AgentStore(db).put({ keyName: aid, delegation, serviceTcp: '', registeredAt: 0 });
  const relate = (peer: Aid, change: Partial<Relationship>): number => {
    const pair = store.open(aid, peer, 0) ?? assert.fail();
    store.setRelationship(pair.id, { ...pair, ...change });
    return pair.id;
  };
  const sessionOf = (peer: Aid, host: string | null = null): ChatSession => {
    const names = { caller: aid, called: peer, purpose: 'chat', accessToken: undefined, nodeKey: null } as const;
    const remote = host === null ? null : { host, port: 1 };
    const link = asLink(new PassThrough(), names, () => ({ kind: 'direct', remote, source: host, rttMs: 1 }));
    const nothing = (): void => {};
    const heard = { onFrames: nothing, onArrival: nothing, onFailure: nothing, onDrain: nothing, onClose: nothing };
    return new ChatSession(link, true, clock, heard);
  };
  const take = (session: ChatSession, ...frames: Frame[]) => processFrames(deps, session, frames);
  return { aid, db, store, entries, reported, known, relate, sessionOf, take };
}

/** The ID of the `n`th entry; null for 0. */
function entryId(n: number): Uint8Array | null {
  return n === 0 ? null : new Uint8Array(16).fill(n);
}

/** Processes a receipt that names one of two sent entries, after `arrived` of them were acknowledged. */
function receipt(answer: Answer, last: number, arrived = 0) {
  const { aid, store, entries, relate, sessionOf, take } = setUp();
  const peer = newIdentity().aid;
  const id = relate(peer, FRIENDS);
  for (const n of [1, 2]) entries.queue(id, { id: new Uint8Array(16).fill(n), at: n, text: `${n}`, file: null });
  const session = sessionOf(peer);
  session.cursor = {
    stream: OURS,
    lastId: entryId(2),
    lastEntry: 2,
    unacknowledged: [1, 2].map((n) => ({ id: new Uint8Array(16).fill(n), place: n, bytes: 1 })),
  };
  if (arrived > 0) take(session, { kind: 'receipt', stream: OURS, last: entryId(arrived), answer: 'ok' });
  const { sentUpTo, isBusy } = take(session, { kind: 'receipt', stream: OURS, last: entryId(last), answer });
  const { state, acked, queued, control } = store.pair(aid, peer) ?? assert.fail();
  return { sentUpTo, isBusy, state, acked, queued, control, awaited: session.cursor?.unacknowledged.length };
}

test('a receipt reports delivered entries and the handling of the remaining ones', () => {
  const friends = { state: 'friends', isBusy: false, control: null };
  assert.deepEqual(receipt('ok', 1), { ...friends, sentUpTo: 1, acked: 1, queued: 1, awaited: 1 });
  assert.deepEqual(receipt('ok', 2), { ...friends, sentUpTo: 2, acked: 2, queued: 0, awaited: 0 });
  assert.deepEqual(receipt('ok', 9), { ...friends, sentUpTo: 0, acked: 0, queued: 2, awaited: 2 }, 'never sent');
  assert.deepEqual(receipt('busy', 0), { ...friends, isBusy: true, sentUpTo: 0, acked: 0, queued: 2, awaited: 2 });
  const anew = { ...friends, control: 'accept' };
  assert.deepEqual(receipt('unknown', 1), { ...anew, sentUpTo: 1, acked: 1, queued: 1, awaited: 1 });
  // A delivered entry that the peer has lost is queued again.
  assert.deepEqual(receipt('unknown', 1, 2), { ...anew, sentUpTo: 0, acked: 1, queued: 1, awaited: 0 });
  assert.deepEqual(receipt('unknown', 0, 2), { ...anew, sentUpTo: 0, acked: 0, queued: 2, awaited: 0 });
  // The peer has an entry that this log lost, so nothing is known about the other ones.
  assert.deepEqual(receipt('unknown', 9, 2), { ...anew, sentUpTo: 0, acked: 0, queued: 2, awaited: 0 });
  const over = { ...friends, state: 'none' };
  assert.deepEqual(receipt('gone', 0), { ...over, sentUpTo: 0, acked: 0, queued: 0, awaited: 2 });
});

/** Processes an acknowledgment of number `n` for a request sent as number 1. */
function heard(n: number, answer: Answer) {
  const { aid, store, relate, sessionOf, take } = setUp();
  const peer = newIdentity().aid;
  relate(peer, { state: 'out_pending', outStream: OURS, control: 'request' });
  const session = sessionOf(peer);
  session.pendingControl = { n: 1, about: store.pair(aid, peer) ?? assert.fail() };
  const { isBusy } = take(session, { kind: 'heard', n, answer });
  return { isBusy, control: store.pair(aid, peer)?.control, awaited: session.pendingControl !== null };
}

test('an acknowledged control message is not sent again; if the peer is busy, it is sent later', () => {
  assert.deepEqual(heard(1, 'ok'), { isBusy: false, control: null, awaited: false });
  assert.deepEqual(heard(1, 'busy'), { isBusy: true, control: 'request', awaited: false });
  assert.deepEqual(heard(2, 'ok'), { isBusy: false, control: 'request', awaited: true });
});

test('pending requests are limited in total and per network, with a part reserved for known agents', () => {
  const { aid, store, reported, known, sessionOf, take } = setUp();
  const ask = (host: string, isKnown = false): Answer | undefined => {
    const peer = newIdentity().aid;
    if (isKnown) known.add(peer);
    const [reply] = take(sessionOf(peer, host), {
      kind: 'request',
      n: 1,
      stream: THEIRS,
      note: '',
    }).replies;
    return reply?.kind === 'heard' ? reply.answer : undefined;
  };
  for (let i = 0; i < MAX_INVITES_PER_SOURCE; i++) assert.equal(ask('198.51.100.1'), 'ok');
  assert.equal(ask('198.51.100.1'), 'busy');
  for (let i = 1; i < MAX_INVITES_OF_STRANGERS / MAX_INVITES_PER_SOURCE; i++)
    for (let n = 0; n < MAX_INVITES_PER_SOURCE; n++) assert.equal(ask(`198.51.${100 + i}.1`), 'ok');
  assert.equal(ask('203.0.113.1'), 'busy');
  for (let n = MAX_INVITES_OF_STRANGERS; n < MAX_INVITES; n++) assert.equal(ask('198.51.100.1', true), 'ok');
  assert.equal(ask('203.0.113.1', true), 'busy');
  assert.equal(store.count(aid, 'in_pending'), MAX_INVITES);
  assert.equal(reported.length, MAX_INVITES);
});

test('a network has few pending requests, even with many addresses and node keys', () => {
  const { known, sessionOf, take } = setUp();
  const ask = (peer: Aid, host: string): Answer | undefined => {
    const [reply] = take(sessionOf(peer, host), { kind: 'request', n: 1, stream: THEIRS, note: '' }).replies;
    return reply?.kind === 'heard' ? reply.answer : undefined;
  };
  const flood = (host: (i: number) => string): number =>
    Array.from({ length: MAX_INVITES_OF_STRANGERS }, (_, i) => ask(newIdentity().aid, host(i))).filter(
      (answer) => answer === 'ok',
    ).length;
  assert.equal(
    flood((i) => `198.51.100.${i}`),
    MAX_INVITES_PER_NETWORK,
  );
  const friend = newIdentity().aid;
  known.add(friend);
  assert.equal(ask(friend, '198.51.100.1'), 'ok');
  assert.equal(ask(newIdentity().aid, '203.0.113.1'), 'ok');
  // Requests over relays have no address and count as one network.
  assert.equal(
    flood((i) => `node ${i}`),
    MAX_INVITES_OF_STRANGERS - MAX_INVITES_PER_NETWORK - 2,
  );
});

test('entries are accepted from friends only, each stream separately, up to the limit of unread entries', () => {
  const { aid, db, store, entries, reported, relate, sessionOf, take } = setUp();
  const message = (n: number, stream = THEIRS): Frame => {
    const content = { id: new Uint8Array(16).fill(n), at: 0, text: `${n}`, file: null };
    return { kind: 'message', stream, after: entryId(n - 1), content };
  };
  const answers = (peer: Aid, ...frames: Frame[]) =>
    take(sessionOf(peer), ...frames).replies.map((reply) =>
      reply.kind === 'receipt' ? [reply.last?.[0] ?? 0, reply.answer] : [],
    );
  const states = { none: [[0, 'gone']], in_pending: [[0, 'gone']], out_pending: [[0, 'busy']], blocked: [[1, 'ok']] };
  for (const state of ['none', 'in_pending', 'out_pending', 'blocked'] as const) {
    const peer = newIdentity().aid;
    relate(peer, { ...FRIENDS, state });
    assert.deepEqual(answers(peer, message(1)), states[state], state);
  }
  const friend = newIdentity().aid;
  const id = relate(friend, FRIENDS);
  assert.deepEqual(answers(friend, message(1), message(2), message(3, OURS), message(4, OURS)), [
    [2, 'ok'],
    [2, 'unknown'],
  ]);
  assert.deepEqual(answers(friend, message(2), message(4)), [[2, 'unknown']], 'a gap');
  assert.deepEqual(answers(friend, message(1), message(2)), [[2, 'ok']], 'known messages');
  assert.equal(entries.page(id, 0, 10, 1e6).entries.length, 2);
  assert.deepEqual(reported, ['chat.received', 'chat.received', 'chat.unread']);
  store.transaction(() => {
    const pair = store.pair(aid, friend) ?? assert.fail();
    const many = Array.from({ length: MAX_UNREAD - pair.unread - 1 }, (_, i) => {
      const name = new Uint8Array(16);
      new DataView(name.buffer).setUint32(0, i + 1);
      return { id: name, at: 0, text: '', file: null };
    });
    entries.receive(pair, many, pair.receivedId, 0);
  });
  assert.deepEqual(answers(friend, message(3), message(4)), [[0, 'busy']]);
  const unreadBytes = (bytes: number) => db.run`UPDATE chat_pairs SET unread_bytes = ${bytes} WHERE id = ${id}`;
  unreadBytes(MAX_UNREAD_BYTES + 1);
  assert.deepEqual(answers(friend, message(3)), [[0, 'busy']]);
  unreadBytes(MAX_UNREAD_BYTES);
  assert.deepEqual(answers(friend, message(3)), [[3, 'ok']]);
});

test('a check is answered only if the named message is missing', () => {
  const { aid, store, relate, sessionOf, take } = setUp();
  const check = (peer: Aid, after: number, stream = THEIRS) =>
    take(sessionOf(peer), { kind: 'check', stream, after: new Uint8Array(16).fill(after) }).replies.map((reply) =>
      reply.kind === 'receipt' ? [reply.last?.[0] ?? 0, reply.answer] : [],
    );
  const friend = newIdentity().aid;
  relate(friend, FRIENDS);
  assert.deepEqual(check(friend, 1), [[0, 'unknown']]);
  for (const n of [1, 2]) {
    const content = { id: new Uint8Array(16).fill(n), at: 0, text: `${n}`, file: null };
    take(sessionOf(friend), { kind: 'message', stream: THEIRS, after: entryId(n - 1), content });
  }
  assert.deepEqual(check(friend, 1), []);
  assert.deepEqual(check(friend, 2), []);
  assert.deepEqual(check(friend, 3), [[2, 'unknown']]);
  assert.deepEqual(check(friend, 2, OURS), [[2, 'unknown']], 'another stream');
  const blocked = newIdentity().aid;
  relate(blocked, { ...FRIENDS, state: 'blocked' });
  assert.deepEqual(check(blocked, 1), []);
  const former = newIdentity().aid;
  relate(former, { ...FRIENDS, state: 'none' });
  assert.deepEqual(check(former, 1), [[0, 'gone']]);
  // The acceptance of the request is lost here. The repeated request brings it back.
  const asked = newIdentity().aid;
  relate(asked, { ...FRIENDS, state: 'out_pending', expiresAt: 9 });
  assert.deepEqual(check(asked, 1), [[0, 'busy']]);
  assert.deepEqual([store.pair(aid, asked)?.control, store.pair(aid, asked)?.controlUntil], ['request', 9]);
});
