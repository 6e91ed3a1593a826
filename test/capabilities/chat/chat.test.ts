/** Conversations of friends over a reliable network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChatFrameReader } from '../../../src/capabilities/chat/wire.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { testAid } from '../../support/agents.ts';
import { ChatWorld } from '../../support/chat-world.ts';
import { CALM } from '../../support/flaky-links.ts';
import { newIdentity } from '../../support/identities.ts';
import { withCode } from '../../support/link-world.ts';

const HOUR_MS = 3600_000;

test('a request, its acceptance, and texts in order in both directions', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  assert.equal(a.chat.request(alice, bob, 'It is me'), 'out_pending');
  assert.equal(a.chat.request(alice, bob, 'again'), 'out_pending');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  assert.deepEqual(
    b.chat.contacts(bob, 'in_pending').map(({ peer, note }) => ({ peer, note })),
    [{ peer: alice, note: 'It is me' }],
  );
  assert.deepEqual(b.events, [{ aid: bob, type: 'chat.invites', data: { count: 1, peers: [alice], from: alice } }]);
  assert.deepEqual([...b.chat.pending()], [[bob, { invites: 1, unread: 0 }]]);
  assert.equal(b.chat.accept(bob, alice), 'friends');
  assert.equal(b.chat.accept(bob, alice), 'friends');
  await world.until('the answer', () => a.state(alice, bob) === 'friends');
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(await world.during(a.chat.send(alice, bob, { text: `a${i}` })), {
      seq: 2 * i + 1,
      status: 'sent',
    });
    assert.deepEqual(await world.during(b.chat.send(bob, alice, { text: `b${i}` })), {
      seq: 2 * i + 2,
      status: 'sent',
    });
  }
  assert.deepEqual(b.heard(bob, alice), ['a0', 'a1', 'a2', 'a3', 'a4']);
  assert.deepEqual(a.heard(alice, bob), ['b0', 'b1', 'b2', 'b3', 'b4']);
  assert.deepEqual(
    a.log(alice, bob).map(({ seq }) => seq),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  assert.deepEqual(b.events.slice(1, 3), [
    { aid: bob, type: 'chat.received', data: { peer: alice, seq: 1 } },
    { aid: bob, type: 'chat.unread', data: { peer: alice, unread_count: 1 } },
  ]);
  assert.deepEqual([...b.chat.pending()], [[bob, { invites: 0, unread: 5 }]]);
});

test('a request goes with the header of its link, once', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, 'It is me');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  const [frame, ...others] = new ChatFrameReader().take(a.links.lastFirst);
  assert.ok(frame?.kind === 'request' && frame.n === 1 && frame.note === 'It is me');
  assert.deepEqual(others, []);
  await world.until('the answer', () => a.pairs.pair(alice, bob)?.control === null);
  assert.equal(b.events.length, 1);
});

test('entries sent while the request is pending arrive in order after it is accepted', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, '');
  for (let i = 0; i < 20; i++)
    assert.deepEqual(await world.during(a.chat.send(alice, bob, { text: `${i}` })), { seq: i + 1, status: 'queued' });
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  await assert.rejects(b.say(bob, alice, 'not yet'), withCode('not_friends'));
  await world.clock.run(60_000);
  assert.deepEqual(b.heard(bob, alice), []);
  b.chat.accept(bob, alice);
  await world.until('all entries', () => b.heard(bob, alice).length === 20);
  assert.deepEqual(
    b.heard(bob, alice),
    Array.from({ length: 20 }, (_, i) => `${i}`),
  );
  await world.until('receipts', () => a.log(alice, bob).every(({ status }) => status === 'sent'));
});

test('more entries than the window arrive in order, together with entries sent meanwhile', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  const opened = a.links.opened + b.links.opened;
  const texts = Array.from({ length: 1300 }, (_, i) => `${i}`);
  await world.during(Promise.all(texts.slice(0, 1200).map((text) => a.say(alice, bob, text))));
  for (const text of texts.slice(1200)) await world.during(a.say(alice, bob, text));
  await world.until('all arrived', () => a.pairs.pair(alice, bob)?.queued === 0);
  assert.deepEqual(b.heard(bob, alice), texts);
  assert.equal(a.links.opened + b.links.opened, opened);
});

test('entries queued while the peer is unreachable are sent when it returns', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await b.down();
  for (let i = 0; i < 3; i++) await world.during(a.say(alice, bob, `${i}`));
  assert.ok(a.log(alice, bob).every(({ status }) => status === 'queued'));
  await world.clock.run(20 * HOUR_MS);
  const opened = a.links.opened;
  const back = await b.restart();
  const since = world.clock.now();
  await world.until('all entries', () => back.heard(bob, alice).length === 3);
  assert.ok(world.clock.now() - since < 25_000, `${world.clock.now() - since} ms`);
  assert.deepEqual(back.heard(bob, alice), ['0', '1', '2']);
  assert.ok(a.links.opened - opened < 3);
});

test('files are objects of the sender', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.chat.send(alice, bob, { path: '/tmp/x', text: 'look' }));
  await world.during(a.chat.send(alice, bob, { objectId: 'cd'.repeat(32) }));
  assert.deepEqual(
    b.log(bob, alice).map(({ text, file }) => ({ text, file })),
    [
      { text: 'look', file: { objectId: 'ab'.repeat(32), name: 'notes.txt', size: 3 } },
      { text: null, file: { objectId: 'cd'.repeat(32), name: 'known.bin', size: 7 } },
    ],
  );
  a.objects = { ...a.objects, put: async () => ({ objectId: 'ab'.repeat(32), size: 3, name: '../evil\u0000\n' }) };
  await world.during(a.chat.send(alice, bob, { path: '/tmp/strange\u0007name' }));
  assert.equal(b.log(bob, alice)[2]?.file?.name, 'strange_name');
  const id = 'ef'.repeat(32);
  await assert.rejects(a.chat.send(alice, bob, { objectId: id }), withCode('not_found'));
  await assert.rejects(a.chat.send(alice, bob, { objectId: 'x' }), withCode('invalid_request'));
  await assert.rejects(a.chat.send(alice, bob, { objectId: id, path: '/x' }), withCode('invalid_request'));
  await assert.rejects(a.chat.send(alice, bob, {}), withCode('invalid_request'));
  await assert.rejects(a.chat.send(alice, bob, { text: '' }), withCode('invalid_request'));
  await assert.rejects(a.chat.send(alice, bob, { text: '\ud800' }), withCode('invalid_request'));
  await assert.rejects(a.chat.send(alice, bob, { text: 'é'.repeat(32 * 1024 + 1) }), withCode('too_large'));
  const longest = 'x'.repeat(64 * 1024);
  await world.during(a.say(alice, bob, longest));
  assert.equal(b.heard(bob, alice).at(-1), longest);
});

test('the read cursor moves forward only, also after a restart', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  for (let i = 0; i < 10; i++) await world.during(a.say(alice, bob, `${i}`));
  await world.during(b.say(bob, alice, 'mine'));
  assert.equal(b.chat.read(bob, alice, 0, 4).unread, 10);
  assert.deepEqual(b.chat.markRead(bob, alice, 4), { readCursor: 4, unread: 6 });
  assert.deepEqual(b.chat.markRead(bob, alice, 2), { readCursor: 4, unread: 6 });
  const again = await b.restart();
  const page = again.chat.read(bob, alice, 4, 3);
  assert.deepEqual(
    { ...page, entries: page.entries.map(({ text }) => text) },
    { entries: ['4', '5', '6'], scannedTo: 7, hasMore: true, readCursor: 4, unread: 6 },
  );
  assert.deepEqual(again.chat.markRead(bob, alice, 1000), { readCursor: 11, unread: 0 });
  assert.deepEqual(again.chat.read(bob, alice, 11, 3), {
    entries: [],
    scannedTo: 11,
    hasMore: false,
    readCursor: 11,
    unread: 0,
  });
  await world.during(a.say(alice, bob, 'more'));
  await world.until('more', () => again.chat.read(bob, alice, 0, 1).unread === 1);
  assert.deepEqual(again.chat.markRead(bob, alice, 0), { readCursor: 12, unread: 0 });
  const stranger = newIdentity().aid;
  assert.deepEqual(again.chat.markRead(bob, stranger, 0), { readCursor: 0, unread: 0 });
  assert.deepEqual(again.chat.read(bob, stranger, 0, 9).entries, []);
});

test('agents of one daemon chat with each other', async () => {
  const world = new ChatWorld();
  const a = await world.node('a');
  const [alice, bob] = [a.host().aid, a.host().aid];
  a.chat.request(alice, bob, '');
  await world.until('the request', () => a.state(bob, alice) === 'in_pending');
  a.chat.accept(bob, alice);
  await world.until('friends', () => a.state(alice, bob) === 'friends');
  await world.during(a.say(alice, bob, 'x'));
  await world.during(a.say(bob, alice, 'y'));
  assert.deepEqual([a.heard(bob, alice), a.heard(alice, bob)], [['x'], ['y']]);
});

test('a peer that is reachable only over its own link is answered on this link', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  b.links.open = async () => {
    throw new SvcError('connect_failed');
  };
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  b.chat.accept(bob, alice);
  await world.until('friends', () => a.state(alice, bob) === 'friends');
  await world.during(b.say(bob, alice, 'from inside'));
  await world.until('it', () => a.heard(alice, bob).length === 1);
});

test('the entries before a position are read, oldest first, without moving the cursor', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  const empty = { entries: [], scannedTo: 0, hasMore: false, readCursor: 0, unread: 0 };
  assert.deepEqual(b.chat.readBefore(bob, newIdentity().aid, 10, 5), empty);
  for (const text of ['1', '2', '3']) await world.during(a.say(alice, bob, text));
  await world.until('all', () => b.pairs.pair(bob, alice)?.unread === 3);
  const page = b.chat.readBefore(bob, alice, 3, 1);
  assert.deepEqual(
    page.entries.map(({ text }) => text),
    ['2'],
  );
  assert.deepEqual([page.scannedTo, page.hasMore, page.readCursor, page.unread], [2, true, 0, 3]);
  const all = b.chat.readBefore(bob, alice, 4, 5);
  assert.deepEqual([all.entries.length, all.hasMore], [3, false]);
  assert.equal(b.chat.isBlocked(bob, alice), false);
  b.chat.block(bob, alice);
  assert.equal(b.chat.isBlocked(bob, alice), true);
});

test('deleting an agent deletes its conversations, and a stopped node leaves no timer behind', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.say(alice, bob, 'x'));
  const { id } = a.pairs.pair(alice, bob) ?? assert.fail();
  const entries = new ChatLog(a.store);
  assert.equal(entries.newest(id, 10).length, 1);
  a.remove(alice);
  assert.deepEqual([a.pairs.all(alice), entries.newest(id, 10)], [[], []]);
  await a.down();
  await b.down();
  await world.clock.run(60_000);
  assert.equal(world.clock.timers, 0);
});

test('a node that stops while it retries leaves no timer behind', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await b.down();
  await world.during(a.say(alice, bob, 'x'));
  await world.clock.run(30_000);
  await a.down();
  await world.clock.run(60_000);
  assert.equal(world.clock.timers, 0);
});

test('idle links are closed, and reopened for the next entry', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.clock.run(400_000);
  const opened = a.links.opened;
  await world.clock.run(24 * HOUR_MS);
  assert.equal(a.links.opened, opened);
  await world.during(a.say(alice, bob, 'good morning'));
  assert.equal(a.links.opened, opened + 1);
  assert.deepEqual(b.heard(bob, alice), ['good morning']);
});

test('a pair switches to a faster path, and loses and repeats nothing', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  a.links.isQuicker = true;
  const { opened } = a.links;
  const sent = Array.from({ length: 20 }, (_, i) => `${i}`);
  for (const text of sent) await world.during(a.say(alice, bob, text));
  assert.equal(a.links.opened, opened + 1);
  await world.clock.run(1000);
  for (const text of ['and', 'on']) await world.during(a.say(alice, bob, text));
  await world.during(b.say(bob, alice, 'back'));
  assert.equal(a.links.opened, opened + 1);
  assert.deepEqual(b.heard(bob, alice), [...sent, 'and', 'on']);
  assert.deepEqual(a.heard(alice, bob), ['back']);
});

test('if the faster path fails, a pair stays on its link', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  a.links.isQuicker = true;
  world.links.trouble = { ...CALM, refuse: 1 };
  for (const text of ['one', 'two']) await world.during(a.say(alice, bob, text));
  assert.deepEqual(b.heard(bob, alice), ['one', 'two']);
});

test('entries queued before a restart are sent, even before the network is ready', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  world.links.part(a.links, b.links);
  await world.during(a.say(alice, bob, 'waits'));
  await a.restart(a.store, false);
  world.links.heal();
  await world.until('the text', () => b.heard(bob, alice).includes('waits'), 30_000);
});

test('after a network change, the most recent friends of the last week are contacted, up to a limit', async (t) => {
  const world = new ChatWorld();
  const a = await world.node('a');
  const alice = a.host().aid;
  const peers = Array.from({ length: 201 }, (_, i) => testAid(i + 1));
  const befriend = (peer: Aid, age: number): void => {
    const since = world.clock.now() - age;
    const pair = a.pairs.open(alice, peer, since) ?? assert.fail();
    a.pairs.setRelationship(pair.id, { ...pair, state: 'friends', since, outStream: new Uint8Array(16) });
  };
  peers.forEach((peer, i) => befriend(peer, i * 60_000));
  const open = t.mock.method(a.links, 'open');
  /** The number of friends contacted because of `greet`. */
  const greeted = async (greet: () => void): Promise<number> => {
    a.setReady(false);
    await world.clock.run(HOUR_MS);
    open.mock.resetCalls();
    greet();
    await world.clock.run(HOUR_MS);
    const asked = new Set(open.mock.calls.map(({ arguments: [, peer] }) => peer));
    return peers.findIndex((peer) => !asked.has(peer));
  };
  assert.equal(await greeted(() => a.setReady(true)), 200);
  assert.equal(await greeted(() => a.chat.agentChanged({ aid: alice, kind: 'registered' })), 200);
  peers.slice(150).forEach((peer, i) => befriend(peer, 7 * 24 * HOUR_MS + (i + 1) * 60_000));
  assert.equal(await greeted(() => a.setReady(true)), 150);
});
