/** How a storage node handles requests from strangers. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { agentKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { DhtEngine } from '../../../src/network/records/engine.ts';
import {
  COMMAND,
  decodeFindReply,
  decodeStoreReply,
  encodeFindRequest,
  type StoreReply,
} from '../../../src/network/records/messages.ts';
import type { RpcMessage } from '../../../src/network/records/rpc/rpc.ts';
import { hostileNode } from '../../support/hostile-dht.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { endpointRecord, noteRecord, serviceRecord, testRecord } from '../../support/records.ts';
import { DhtTestnet, type TestNode } from '../../support/testnet-dht.ts';

/** Seconds since the Unix epoch. */
const NOW = Math.floor(Date.now() / 1000);

interface World {
  readonly node: TestNode;
  readonly stranger: DhtEngine;
  /** Stores bytes at the node under a key, with a token from the node. */
  readonly store: (key: Uint8Array, encoded: Uint8Array) => Promise<StoreReply | null>;
  /** Fails if this message is answered: a later message must be answered first. */
  readonly assertUnanswered: (message: RpcMessage, from?: DhtEngine) => Promise<void>;
}

const SURVEY = encodeFindRequest({ types: [], wantsRecords: false });

async function world(t: TestContext): Promise<World> {
  const net = await DhtTestnet.start(1);
  t.after(() => net[Symbol.asyncDispose]());
  const node = net.at(0);
  const stranger = await hostileNode(t, () => {});
  const survey = (target: Uint8Array) =>
    stranger.request(node.dht.address, { command: COMMAND.find, target, value: SURVEY });
  return {
    node,
    stranger,
    store: async (key, encoded) => {
      const found = await survey(key);
      const message = { command: COMMAND.store, target: key, value: encoded, token: found?.token ?? null };
      const reply = await stranger.request(node.dht.address, message);
      assert.equal(reply?.token, null, 'one token is enough');
      return decodeStoreReply(reply?.value ?? new Uint8Array());
    },
    assertUnanswered: async (message, from = stranger) => {
      const answer = from.request(node.dht.address, message).then((reply) => reply !== null);
      assert.ok(await survey(agentKey(newIdentity().aid)));
      assert.equal(await Promise.race([answer, setImmediate(false)]), false);
    },
  };
}

test('a valid record of any type that fits is stored', async (t) => {
  const { node, store } = await world(t);
  const owner = newIdentity();
  for (const { key, record } of [
    endpointRecord(owner),
    serviceRecord('lang.translate', owner),
    noteRecord(owner),
    { key: agentKey(owner.aid), record: testRecord(owner, RECORD.profile) },
    { key: agentKey(owner.aid), record: testRecord(owner, RECORD.encryptionKeys) },
  ])
    assert.deepEqual(await store(key, record.encoded), { code: 'kept' });
  assert.equal(node.dht.usage().records, 5);
});

test('a record with an invalid signature is rejected', async (t) => {
  const { node, store } = await world(t);
  const owner = newIdentity();
  const { key, record } = endpointRecord(owner);
  const forged = Uint8Array.from(record.encoded);
  forged.set([(forged.at(-1) ?? 0) ^ 1], forged.length - 1);
  assert.deepEqual(await store(key, forged), { code: 'bad' });
  assert.deepEqual(await store(key, new Uint8Array(300)), { code: 'bad' });
  assert.deepEqual(await store(key, new Uint8Array()), { code: 'bad' });
  const attacker = newIdentity();
  const stolen = { ...attacker, aid: owner.aid };
  assert.deepEqual(await store(key, endpointRecord(stolen).record.encoded), { code: 'bad' });
  assert.equal(node.dht.usage().records, 0);
});

test('a record that is not valid yet or has expired is rejected with its reason', async (t) => {
  const { node, store } = await world(t);
  const owner = newIdentity();
  const { key } = endpointRecord(owner);
  for (const timestamp of [NOW - 7200, NOW + 300])
    assert.deepEqual(await store(key, endpointRecord(owner, { timestamp }).record.encoded), { code: 'not_now' });
  for (const [issuedAt, expiresAt] of [
    [NOW - 1000, NOW - 500],
    [NOW + 300, 0],
  ] as const) {
    const { record } = endpointRecord(delegateAnew(owner.master, issuedAt, expiresAt));
    assert.deepEqual(await store(key, record.encoded), { code: 'not_now' });
  }
  assert.equal(node.dht.usage().records, 0);
});

test('a record under the wrong key is rejected', async (t) => {
  const { node, store } = await world(t);
  const owner = newIdentity();
  const elsewhere = agentKey(newIdentity().aid);
  assert.deepEqual(await store(elsewhere, endpointRecord(owner).record.encoded), { code: 'misplaced' });
  const service = serviceRecord('lang.translate', owner).record.encoded;
  assert.deepEqual(await store(serviceKey('lang.other'), service), { code: 'misplaced' });
  assert.deepEqual(await store(mailboxKey(newIdentity().aid), noteRecord(owner).record.encoded), { code: 'misplaced' });
  assert.equal(node.dht.usage().records, 0);
});

test('the replay of an older record is rejected with the newer record', async (t) => {
  const { node, store } = await world(t);
  const owner = newIdentity();
  const older = endpointRecord(owner, { seq: 1 });
  const newer = endpointRecord(owner, { seq: 2 });
  await store(newer.key, newer.record.encoded);
  const reply = await store(older.key, older.record.encoded);
  assert.equal(reply?.code, 'newer');
  assert.deepEqual(Buffer.from(reply?.record ?? []), Buffer.from(newer.record.encoded));
  assert.equal((await node.dht.get(newer.key, RECORD.endpoints))?.seq, 2);
});

test('a record that is too large for a datagram is rejected in a datagram', async (t) => {
  const { node, stranger, assertUnanswered } = await world(t);
  const owner = newIdentity();
  const target = agentKey(owner.aid);
  const empty = testRecord(owner, RECORD.profile, { payload: new Uint8Array() }).encoded.length;
  const { encoded: value } = testRecord(owner, RECORD.profile, { payload: new Uint8Array(1050 - empty) });
  assert.ok(value.length > 1000);
  const found = await stranger.request(node.dht.address, { command: COMMAND.find, target, value: SURVEY });
  await assertUnanswered({ command: COMMAND.store, target, value, token: found?.token ?? null });
  assert.equal(node.dht.usage().records, 0);
});

test('a record from an unverified address is ignored', async (t) => {
  const { node, assertUnanswered } = await world(t);
  const { key, record } = endpointRecord();
  const message = { command: COMMAND.store, target: key, value: record.encoded };
  await assertUnanswered(message);
  await assertUnanswered({ ...message, token: new Uint8Array(32) });
  assert.equal(node.dht.usage().records, 0);
});

test('a request from another network gets no response', async (t) => {
  const { node, assertUnanswered } = await world(t);
  const other = await hostileNode(t, () => {}, 'other');
  const target = agentKey(newIdentity().aid);
  await assertUnanswered({ command: COMMAND.find, target, value: SURVEY }, other);
  assert.equal(
    node.dht.peers().some(({ port }) => port === other.address.port),
    false,
  );
});

test('a malformed request gets no response', async (t) => {
  const { node, stranger, assertUnanswered } = await world(t);
  const target = agentKey(newIdentity().aid);
  const value = encodeFindRequest({ types: [], wantsRecords: true });
  await assertUnanswered({ command: 99, target, value });
  await assertUnanswered({ command: COMMAND.find, value });
  await assertUnanswered({ command: COMMAND.find, target });
  await assertUnanswered({ command: COMMAND.find, target, value: value.subarray(1) });
  await assertUnanswered({ command: COMMAND.probe, value: new Uint8Array([0xa0]) });
  const reply = await stranger.request(node.dht.address, { command: COMMAND.find, target, value });
  assert.ok(reply?.value && decodeFindReply(reply.value));
});
