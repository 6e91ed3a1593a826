/** Requests, answers, ends and blocks over a reliable network. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_CONTACTS } from '../../../src/capabilities/chat/chat.ts';
import { onStranger } from '../../../src/capabilities/chat/relationship.ts';
import type { Relationship } from '../../../src/foundation/store/chat.ts';
import { testAid } from '../../support/agents.ts';
import { ChatWorld } from '../../support/chat-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { withCode } from '../../support/link-world.ts';

const HOUR_MS = 3600_000;

test('crossing requests create a friendship', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, '');
  b.chat.request(bob, alice, '');
  await world.until('friends', () => a.state(alice, bob) === 'friends' && b.state(bob, alice) === 'friends');
  await world.during(a.say(alice, bob, 'x'));
  await world.during(b.say(bob, alice, 'y'));
  assert.deepEqual([b.heard(bob, alice), a.heard(alice, bob)], [['x'], ['y']]);
});

test('a request to an agent that has sent one accepts it', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  assert.equal(b.chat.request(bob, alice, ''), 'friends');
  await world.until('friends', () => a.state(alice, bob) === 'friends');
});

test('the other side receives a refusal, a withdrawal and an end', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  b.chat.refuse(bob, alice);
  await world.until('the refusal', () => a.state(alice, bob) === 'none');
  a.chat.request(alice, bob, '');
  await world.until('the second request', () => b.state(bob, alice) === 'in_pending');
  a.chat.remove(alice, bob);
  await world.until('the withdrawal', () => b.state(bob, alice) === 'none');
  a.chat.request(alice, bob, '');
  await world.until('the third request', () => b.state(bob, alice) === 'in_pending');
  b.chat.accept(bob, alice);
  await world.until('friends', () => a.state(alice, bob) === 'friends');
  await world.during(a.say(alice, bob, 'hello'));
  b.chat.remove(bob, alice);
  await world.until('the end', () => a.state(alice, bob) === 'none');
  await assert.rejects(a.say(alice, bob, 'still there?'), withCode('not_friends'));
  // The log remains.
  assert.deepEqual(b.heard(bob, alice), ['hello']);
  assert.equal(a.log(alice, bob).length, 1);
});

test('nothing is stored for strangers whose requests were withdrawn or refused', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  const [refused, deaf] = [a.host().aid, a.host().aid];
  for (const aid of [alice, refused, deaf]) a.chat.request(aid, bob, '');
  await world.until('the requests', () => b.pairs.count(bob, 'in_pending') === 3);
  a.chat.remove(alice, bob);
  b.chat.refuse(bob, refused);
  a.chat.block(deaf, bob);
  b.chat.refuse(bob, deaf);
  await world.until('the ends', () => b.pairs.count(bob, 'none') === 3 && b.pairs.pendingPairsOf(bob).length === 0);
  await world.clock.run(HOUR_MS);
  assert.deepEqual([b.pairs.all(bob), a.pairs.all(alice), a.pairs.all(refused)], [[], [], []]);
});

test('the limit of friends applies to accepting as to requesting', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  const contacts = b.store.transaction(() =>
    Array.from({ length: MAX_CONTACTS }, (_, n) => {
      const pair = b.pairs.open(bob, testAid(n), 0) ?? assert.fail();
      b.pairs.setRelationship(pair.id, { ...pair, state: 'friends' });
      return pair;
    }),
  );
  assert.throws(() => b.chat.accept(bob, alice), withCode('quota_exceeded'));
  const [first] = contacts;
  assert.ok(first);
  b.pairs.setRelationship(first.id, { ...first, state: 'none' });
  assert.equal(b.chat.accept(bob, alice), 'friends');
  assert.equal(b.chat.accept(bob, alice), 'friends');
});

test('operations that the state does not allow are rejected', async () => {
  const world = new ChatWorld();
  const [a, alice, , bob] = await world.two();
  await assert.rejects(a.say(alice, bob, 'x'), withCode('not_friends'));
  for (const act of ['accept', 'refuse', 'remove'] as const)
    assert.throws(() => a.chat[act](alice, bob), withCode('wrong_state'), act);
  for (const act of ['accept', 'refuse', 'remove', 'block'] as const)
    assert.throws(() => a.chat[act](alice, alice), withCode('self'), act);
  assert.throws(() => a.chat.request(alice, alice, ''), withCode('self'));
  assert.throws(() => a.chat.request(newIdentity().aid, bob, ''), withCode('not_found'));
  assert.throws(() => a.chat.request(alice, bob, '\u{1f600}'.repeat(281)), withCode('too_large'));
  assert.equal(a.chat.request(alice, bob, '\u{1f600}'.repeat(280)), 'out_pending');
  assert.throws(() => a.chat.accept(alice, bob), withCode('wrong_state'));
  assert.throws(() => a.chat.refuse(alice, bob), withCode('wrong_state'));
  assert.equal(a.pairs.all(alice).length, 1);
});

test('a request to an unreachable peer waits for up to three days', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  await b.down();
  a.chat.request(alice, bob, 'hello?');
  await world.clock.run(70 * HOUR_MS);
  const back = await b.restart();
  await world.until('the request', () => back.state(bob, alice) === 'in_pending', HOUR_MS);
  assert.equal(a.state(alice, bob), 'out_pending');
  // Without an answer it expires on both sides.
  await world.clock.run(74 * HOUR_MS);
  assert.equal(a.state(alice, bob), 'none');
  assert.equal(back.state(bob, alice), 'none');
  assert.equal(back.chat.pending().size, 0);
  await back.down();
  a.chat.request(alice, bob, 'hello?');
  await world.during(a.say(alice, bob, 'this never arrives'));
  await world.clock.run(74 * HOUR_MS);
  assert.equal(a.state(alice, bob), 'none');
  assert.deepEqual(
    a.log(alice, bob).map(({ status }) => status),
    ['dropped'],
  );
});

test('a request that is answered in its last hour still creates a friendship', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  await b.down();
  a.chat.request(alice, bob, '');
  await world.clock.run(71 * HOUR_MS);
  const back = await b.restart();
  await world.until('the request', () => back.state(bob, alice) === 'in_pending', HOUR_MS);
  await world.clock.run(71 * HOUR_MS);
  back.chat.accept(bob, alice);
  await world.until('friends', () => a.state(alice, bob) === 'friends');
});

test('a block looks like silence, and a request by the blocking agent removes it', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  b.chat.block(bob, alice);
  b.chat.block(bob, alice);
  const seen = b.events.length;
  assert.equal(a.state(alice, bob), 'friends');
  assert.deepEqual(await world.during(a.chat.send(alice, bob, { text: 'hello?' })), { seq: 1, status: 'sent' });
  await world.clock.run(HOUR_MS);
  assert.equal(a.state(alice, bob), 'friends');
  assert.deepEqual(b.heard(bob, alice), []);
  assert.equal(b.events.length, seen);
  await assert.rejects(b.say(bob, alice, 'x'), withCode('not_friends'));
  assert.throws(() => b.chat.accept(bob, alice), withCode('wrong_state'));
  assert.deepEqual(
    b.chat.contacts(bob, 'blocked').map(({ peer }) => peer),
    [alice],
  );
  // A blocked stranger may send requests and gets no answer.
  a.chat.remove(alice, bob);
  await world.clock.run(1000);
  a.chat.request(alice, bob, '');
  await world.clock.run(HOUR_MS);
  assert.equal(a.state(alice, bob), 'out_pending');
  assert.equal(b.state(bob, alice), 'blocked');
  assert.equal(b.chat.request(bob, alice, ''), 'out_pending');
  await world.until('friends again', () => a.state(alice, bob) === 'friends' && b.state(bob, alice) === 'friends');
  await world.during(a.say(alice, bob, 'there you are'));
  assert.deepEqual(b.heard(bob, alice), ['there you are']);
});

test('after an end and a new request, entries arrive despite equal sequence numbers', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  const sent: string[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 3; i++) {
      sent.push(`${round}.${i}`);
      await world.during(a.say(alice, bob, `${round}.${i}`));
    }
    const [one, other] = round % 2 === 0 ? ([a, b] as const) : ([b, a] as const);
    const [first, second] = round % 2 === 0 ? [alice, bob] : [bob, alice];
    one.chat.remove(first, second);
    if (round < 2) await world.until('the end', () => other.state(second, first) === 'none');
    one.chat.request(first, second, '');
    await world.until('friends', () => {
      if (other.state(second, first) === 'in_pending') other.chat.accept(second, first);
      return a.state(alice, bob) === 'friends' && b.state(bob, alice) === 'friends';
    });
  }
  await world.clock.run(120_000);
  assert.deepEqual(b.heard(bob, alice), sent);
});

test('an end that the peer has not received does not prevent a new request', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await b.down();
  a.chat.remove(alice, bob);
  a.chat.request(alice, bob, 'sorry');
  const back = await b.restart();
  // For Bob, the friendship never ended.
  await world.until('friends', () => a.state(alice, bob) === 'friends');
  assert.equal(back.state(bob, alice), 'friends');
  await world.during(a.say(alice, bob, '1'));
  await world.during(back.say(bob, alice, '2'));
  assert.deepEqual([back.heard(bob, alice), a.heard(alice, bob)], [['1'], ['2']]);
});

test('strangers can use eighty of the hundred pending requests of an agent; the next request waits', async () => {
  const world = new ChatWorld();
  const [a, , b, bob] = await world.two();
  const askers = Array.from({ length: 83 }, () => a.host().aid);
  for (const asker of askers) a.chat.request(asker, bob, '');
  await world.until('eighty', () => b.chat.contacts(bob, 'in_pending').length === 80);
  await world.clock.run(100_000);
  assert.equal(b.chat.contacts(bob, 'in_pending').length, 80);
  for (const { peer } of b.chat.contacts(bob, 'in_pending').slice(0, 10)) b.chat.refuse(bob, peer);
  await world.until('the remaining requests', () => b.chat.contacts(bob, 'in_pending').length === 73);
});

test('a peer that does not know the stream ends the relationship, which is remembered for late entries', () => {
  const [ours, other] = [new Uint8Array(16).fill(1), new Uint8Array(16).fill(2)];
  const friends: Relationship = {
    state: 'friends',
    since: 0,
    note: '',
    expiresAt: null,
    origin: null,
    outStream: ours,
    acked: 0,
    ackedId: null,
    inStream: null,
    control: null,
    controlUntil: null,
    goneOut: null,
    goneIn: null,
  };
  const { next, dropsQueue } = onStranger(friends, ours, 1000);
  assert.deepEqual([next.state, next.since, next.outStream, dropsQueue], ['none', 1000, null, true]);
  assert.ok(next.expiresAt !== null && next.expiresAt > 1000);
  assert.equal(onStranger(friends, other, 1000).next, friends);
  const blocked = { ...friends, state: 'blocked' as const };
  assert.equal(onStranger(blocked, ours, 1000).next, blocked);
});
