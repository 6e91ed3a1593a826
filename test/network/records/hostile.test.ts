/** Readers and publishers among malicious nodes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { DhtEngine } from '../../../src/network/records/engine.ts';
import {
  COMMAND,
  decodeFindRequest,
  encodeFindReply,
  encodeFindRequest,
  encodeStoreReply,
  type FindReply,
  type FindRequest,
  type StoreReply,
} from '../../../src/network/records/messages.ts';
import type { RpcRequest } from '../../../src/network/records/rpc/rpc.ts';
import { eventually } from '../../support/eventually.ts';
import { hostileNode } from '../../support/hostile-dht.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord, largeRecord, serviceRecord } from '../../support/records.ts';
import { DhtTestnet, reached, type TestNode } from '../../support/testnet-dht.ts';

const NOW = Math.floor(Date.now() / 1000);

const SURVEY: FindRequest = { types: [], wantsRecords: false };

const NOTHING: FindReply = {
  nodeKey: new Uint8Array(32),
  quicPort: 9009,
  nodes: [],
  count: 0,
  digest: new Uint8Array(8),
  records: [],
  summaries: [],
  time: NOW,
};

/** Nodes that are in every routing table, send this reply to every FIND, and "kept" to every STORE. */
async function liars(t: TestContext, net: DhtTestnet, count: number, lie: Partial<FindReply>): Promise<DhtEngine[]> {
  const answer = (request: RpcRequest): void => {
    if (request.command === COMMAND.find) request.reply(encodeFindReply({ ...NOTHING, ...lie }));
    if (request.command === COMMAND.store) request.reply(encodeStoreReply({ code: 'kept' }));
  };
  const engines = await Promise.all(Array.from({ length: count }, () => hostileNode(t, answer)));
  for (const engine of engines) await introduce(engine, net);
  return engines;
}

/** Adds a node to every routing table. */
async function introduce(engine: DhtEngine, net: DhtTestnet): Promise<void> {
  const survey = { command: COMMAND.find, target: new Uint8Array(32), value: encodeFindRequest(SURVEY) };
  await Promise.all(net.nodes.map(({ dht }) => engine.request(dht.address, survey)));
  await eventually('the node is in the table', () =>
    net.nodes.every(({ dht }) => dht.peers().some(({ port }) => port === engine.address.port)),
  );
}

/** For tests that do not depend on time: no honest node counts as slow, even on a busy machine. */
const UNHURRIED: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  after: (ms, task) => (ms === 0 ? systemClock.after(0, task) : { cancel: () => {} }),
};

async function network(t: TestContext, count: number, clock: Clock = systemClock): Promise<DhtTestnet> {
  const net = await DhtTestnet.start(1, { clock });
  t.after(() => net[Symbol.asyncDispose]());
  // Nodes that join at the same time find each other by later searches, for which an unhurried clock has no timers.
  for (let i = 1; i < count; i++) await net.add({ clock });
  await Promise.all(net.nodes.map(({ dht }) => reached(dht, (r) => r.peers === count - 1)));
  return net;
}

async function read(node: TestNode, key: Uint8Array): Promise<SignedRecord | null> {
  return await node.dht.get(key, RECORD.endpoints);
}

test('a reader ignores a record with an invalid signature', async (t) => {
  const net = await network(t, 5, UNHURRIED);
  const owner = newIdentity();
  const { key, record } = endpointRecord(owner);
  const forged = Uint8Array.from(endpointRecord(owner, { seq: 9 }).record.encoded);
  forged.set([(forged.at(-1) ?? 0) ^ 1], forged.length - 1);
  const lies = [
    forged,
    endpointRecord(owner, { seq: 9, timestamp: NOW - 7200 }).record.encoded,
    endpointRecord(newIdentity(), { seq: 9 }).record.encoded,
    endpointRecord({ ...newIdentity(), aid: owner.aid }, { seq: 9 }).record.encoded,
    serviceRecord('lang.translate', owner, { seq: 9 }).record.encoded,
    new Uint8Array(500),
  ];
  for (const lie of lies) await liars(t, net, 1, { records: [lie], count: 1, digest: recordDigest(lie) });
  await net.at(0).dht.put(key, record);
  for (const node of net.nodes) {
    assert.equal((await read(node, key))?.seq, 1);
    assert.deepEqual(
      (await node.dht.list(key, [])).map(({ seq }) => seq),
      [1],
    );
    assert.equal((await node.dht.get(key, RECORD.endpoints, { thorough: true }))?.seq, 1);
  }
  assert.equal(await read(net.at(1), endpointRecord().key), null);
});

test('a reader finds the record although a node promises a newer one and never sends it', async (t) => {
  const net = await network(t, 5);
  const { key, record } = endpointRecord();
  const promise = {
    type: RECORD.endpoints,
    issuedAt: 2 ** 40,
    seq: 2 ** 50,
    timestamp: NOW,
    digest: new Uint8Array(8),
  };
  const others = [1, 2, 3].map((i) => ({ ...promise, seq: promise.seq + i }));
  for (const summary of [promise, ...others]) await liars(t, net, 1, { summaries: [summary], count: 1 });
  await net.at(0).dht.put(key, record);
  assert.equal((await read(net.at(3), key))?.seq, 1);
});

test('a reader gets a large record although many nodes promise newer ones', async (t) => {
  const net = await network(t, 5, UNHURRIED);
  const { key, record } = largeRecord();
  await net.at(0).dht.put(key, record);
  const reader = await net.add({ clock: UNHURRIED });
  const promise = { type: RECORD.profile, issuedAt: 2 ** 40, seq: 1, timestamp: NOW, digest: new Uint8Array(8) };
  const summaries = [1, 2, 3, 4].map((seq) => ({ ...promise, seq }));
  await liars(t, net, 1, { summaries, count: 4 });
  assert.equal((await reader.dht.list(key, [RECORD.profile])).length, 1);
  for (const summary of summaries.slice(1)) await liars(t, net, 1, { summaries: [summary], count: 1 });
  assert.equal((await reader.dht.list(key, [RECORD.profile])).length, 1);
  assert.equal((await reader.dht.get(key, RECORD.profile))?.seq, 1);
});

test('nodes that return nothing do not hide a record', async (t) => {
  const net = await network(t, 4, UNHURRIED);
  await liars(t, net, 8, {});
  const { key, record } = endpointRecord();
  await net.at(0).dht.put(key, record);
  for (const node of net.nodes) assert.equal((await read(node, key))?.seq, 1);
});

test('a list contains every valid record, even if malicious nodes claim to have more', async (t) => {
  const net = await network(t, 5, UNHURRIED);
  const own = Array.from({ length: 30 }, () => serviceRecord('lang.translate'));
  const forged = own.map(({ record }) => {
    const bytes = Uint8Array.from(record.encoded);
    bytes.set([(bytes.at(-1) ?? 0) ^ 1], bytes.length - 1);
    return bytes;
  });
  await liars(t, net, 3, { count: 1000, digest: new Uint8Array(8).fill(9) });
  await liars(t, net, 1, { count: 2 ** 52, records: forged.slice(0, 1) });
  for (const { key, record } of own) await net.at(0).dht.put(key, record);
  const found = await net.at(2).dht.list(own[0]?.key ?? new Uint8Array(32), [RECORD.service]);
  assert.deepEqual(new Set(found.map(({ aid }) => aid)), new Set(own.map(({ record }) => record.aid)));
});

test('a node that claims the most records and then stalls does not hide the records of other nodes', async (t) => {
  const net = await network(t, 5);
  const { key } = serviceRecord('lang.translate');
  for (let i = 0; i < 30; i++) await net.at(i % 5).dht.put(key, serviceRecord('lang.translate').record);
  const stalling = await hostileNode(t, (request) => {
    const find = request.value === null ? null : decodeFindRequest(request.value);
    if (request.command !== COMMAND.find || find === null) return;
    const reply = encodeFindReply({ ...NOTHING, count: find.part === undefined ? 900 : 0 });
    const answer = (): void => request.reply(reply);
    if (find.part === undefined) answer();
    else systemClock.after(900, answer);
  });
  const honest = [...net.nodes];
  const reader = await net.add();
  await introduce(stalling, net);
  for (const { dht } of honest) {
    const survey = { command: COMMAND.find, target: key, value: encodeFindRequest(SURVEY) };
    const token = (await stalling.request(dht.address, survey))?.token ?? null;
    const value = serviceRecord('lang.translate').record.encoded;
    await stalling.request(dht.address, { command: COMMAND.store, target: key, value, token });
  }
  const found = await reader.dht.list(key, [RECORD.service], { limit: 1000 });
  assert.ok(found.length > 30, `${found.length} of 35`);
});

test('a few nodes with identical incomplete lists do not outvote nodes with more records', async (t) => {
  const net = await network(t, 5, UNHURRIED);
  const own = Array.from({ length: 25 }, () => serviceRecord('lang.translate'));
  const { key, record } = serviceRecord('lang.translate');
  await liars(t, net, 3, { count: 1, digest: recordDigest(record.encoded), records: [record.encoded] });
  for (const published of own) await net.at(1).dht.put(key, published.record);
  const found = new Set((await net.at(3).dht.list(key, [RECORD.service])).map(({ aid }) => aid));
  assert.deepEqual(
    own.filter((published) => !found.has(published.record.aid)),
    [],
  );
});

test('a response that names more nodes than allowed is ignored', async (t) => {
  const net = await network(t, 4);
  const nodes = Array.from({ length: 150 }, (_, i) => ({ host: `10.1.${i % 4}.${i + 1}`, port: 4000 + i }));
  await liars(t, net, 2, { nodes });
  const { key, record } = endpointRecord();
  assert.equal((await net.at(0).dht.put(key, record)).replicas, 3);
  assert.equal((await read(net.at(1), key))?.seq, 1);
  assert.ok(net.nodes.every(({ dht }) => dht.peers().every(({ host }) => host === '127.0.0.1')));
});

test('invented nodes cost a bounded number of requests, and no lookup waits for them', async (t) => {
  const net = await network(t, 4);
  let invented = 0;
  const answer = (request: RpcRequest): void => {
    const nodes = Array.from({ length: 20 }, () => {
      invented++;
      return { host: `127.${1 + (invented >> 16)}.${(invented >> 8) & 255}.${invented & 255}`, port: 4000 };
    });
    if (request.command === COMMAND.find) request.reply(encodeFindReply({ ...NOTHING, nodes }));
  };
  const hostile = await hostileNode(t, answer);
  await introduce(hostile, net);
  const { key, record } = endpointRecord();
  await net.at(0).dht.put(key, record);
  const before = invented;
  assert.equal((await read(net.at(1), key))?.seq, 1);
  assert.equal(await read(net.at(2), endpointRecord().key), null);
  assert.ok(invented - before <= 20 * 10, 'the malicious node does not receive request after request');
  assert.ok(net.nodes.every(({ dht }) => dht.peers().length <= 4));
});

test('a publisher reports only real acknowledgments, and no invented newer record', async (t) => {
  const net = await network(t, 2);
  const owner = newIdentity();
  const { key, record } = endpointRecord(owner);
  const other = endpointRecord(newIdentity(), { seq: 50 }).record;
  await hostileStorer(t, net, { code: 'newer', record: other.encoded });
  await hostileStorer(t, net, { code: 'newer', record: new Uint8Array(900) });
  await hostileStorer(t, net, { code: 'full' });
  const result = await net.at(0).dht.put(key, record);
  assert.deepEqual(result, { replicas: 1, newer: null, refused: { newer: 2, full: 1 }, isHere: true });
});

/** A node that sends this reply to every STORE. */
async function hostileStorer(t: TestContext, net: DhtTestnet, reply: StoreReply): Promise<void> {
  const engine = await hostileNode(t, (request) => {
    if (request.command === COMMAND.find) request.reply(encodeFindReply(NOTHING));
    if (request.command === COMMAND.store) request.reply(encodeStoreReply(reply));
  });
  await introduce(engine, net);
}

test('a node that claims a well-known service port is not dialed there', async (t) => {
  await using net = await DhtTestnet.start(2);
  const answer: { quicPort: number } = { quicPort: 53 };
  const { address } = await hostileNode(t, (request) => {
    if (request.command === COMMAND.find) request.reply(encodeFindReply({ ...NOTHING, ...answer }));
  });
  const { dht } = net.at(0);
  assert.equal(await dht.identify(address), null);
  answer.quicPort = 443;
  assert.equal((await dht.identify(address))?.address.port, 443);
});
