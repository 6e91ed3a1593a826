/** Networks of real nodes that start, crash and restart. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { NodeRequestHub } from '../../support/memory-node-requests.ts';
import { quietPort } from '../../support/programs.ts';
import { endpointRecord, serviceRecord } from '../../support/records.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { DhtTestnet, dhtNode, reached, type TestNode, type TestNodeOptions } from '../../support/testnet-dht.ts';

async function start(t: TestContext, options: TestNodeOptions = {}, hub = new NodeRequestHub()): Promise<TestNode> {
  const node = dhtNode(hub, options);
  await node.dht.start();
  t.after(() => node.dht.stop());
  return node;
}

/** The result of a put on the only node. */
const ALONE = { replicas: 0, newer: null, refused: {}, isHere: true };

test('a network of one node resolves its own records', async (t) => {
  const { dht } = await start(t);
  const services = Array.from({ length: 30 }, () => serviceRecord('lang.translate'));
  for (const { key, record } of services) assert.deepEqual(await dht.put(key, record), ALONE);
  assert.equal((await dht.list(services[0]?.key ?? new Uint8Array(32), [RECORD.service])).length, 30);
  const { key, record } = endpointRecord();
  await dht.put(key, record);
  assert.equal((await dht.get(key, RECORD.endpoints))?.seq, 1);
  const { ready, inRoutingTables } = dht.reachability();
  assert.deepEqual({ ready, inRoutingTables }, { ready: false, inRoutingTables: true });
});

test('two nodes that listen on all interfaces resolve each other, by bootstrap or after one is added to the other', async (t) => {
  const everywhere = { host: '0.0.0.0', port: 0 };
  for (const isAdded of [false, true]) {
    const hub = new NodeRequestHub();
    const a = await start(t, { listen: everywhere }, hub);
    const early = endpointRecord();
    await a.dht.put(early.key, early.record);
    const address = { host: '127.0.0.1', port: a.dht.address.port };
    const b = await start(t, { listen: everywhere, bootstrap: isAdded ? [] : [address] }, hub);
    if (isAdded) b.dht.addNode(address);
    await Promise.all([a, b].map(({ dht }) => reached(dht, (r) => r.ready && r.inRoutingTables)));
    assert.equal((await b.dht.get(early.key, RECORD.endpoints))?.seq, 1);
    const { key, record } = endpointRecord();
    assert.equal((await b.dht.put(key, record)).replicas, 1);
    assert.equal((await a.dht.get(key, RECORD.endpoints))?.seq, 1);
  }
});

test('a bootstrap name is resolved, and resolved again if it did not exist', async (t) => {
  const hub = new NodeRequestHub();
  const a = await start(t, {}, hub);
  let asked = 0;
  const resolveName = async (name: string): Promise<string[]> => {
    asked++;
    assert.equal(name, 'seed.example');
    if (asked === 1) throw new Error('There is no network.');
    // One of several addresses is enough.
    return ['2001:db8::1', '127.0.0.9', '127.0.0.1'];
  };
  const b = await start(t, { bootstrap: [{ host: 'seed.example', port: a.dht.address.port }], resolveName }, hub);
  await reached(b.dht, (r) => r.ready);
  assert.equal(asked, 2);
});

test('a node joins through a contact only after the contact has proven its key, and ignores nodes named by others until then', async (t) => {
  const hub = new NodeRequestHub();
  const [a, other] = [await start(t, {}, hub), await start(t, {}, hub)];
  const pinned = (node: TestNode, proves: boolean) =>
    start(t, { bootstrap: [{ ...a.dht.address, nodeKey: node.nodeKey }], proves: () => proves }, hub);
  const [right, wrong, unproven] = [await pinned(a, true), await pinned(other, true), await pinned(a, false)];
  await reached(right.dht, (r) => r.ready);
  for (const { dht } of [wrong, unproven]) {
    await eventually('the contact is rejected', () => dht.contacts().every(({ state }) => state === 'other_key'));
    assert.deepEqual(dht.peers(), []);
  }
  assert.equal(await wrong.dht.join({ ...a.dht.address, nodeKey: a.nodeKey }), 'met');
  await reached(wrong.dht, (r) => r.ready);
  assert.equal(wrong.dht.contacts().length, 2);
});

test('networks with different names stay separate', async (t) => {
  const hub = new NodeRequestHub();
  const a = await start(t, { network: 'one' }, hub);
  const b = await start(t, { network: 'two', bootstrap: [a.dht.address] }, hub);
  const c = await start(t, { network: 'one', bootstrap: [a.dht.address, b.dht.address] }, hub);
  await reached(c.dht, (r) => r.ready && r.inRoutingTables);
  const { key, record } = endpointRecord();
  assert.equal((await c.dht.put(key, record)).replicas, 1);
  assert.equal(await b.dht.get(key, RECORD.endpoints), null);
  assert.deepEqual(b.dht.peers(), []);
  assert.equal(b.dht.usage().records, 0);
});

test('all records resolve after a third of the nodes crashed', async (t) => {
  const net = await DhtTestnet.start(24);
  t.after(() => net[Symbol.asyncDispose]());
  const published = Array.from({ length: 40 }, () => endpointRecord());
  for (const [i, { key, record }] of published.entries())
    await eventually(
      'there are enough replicas',
      async () => (await net.at(i % 24).dht.put(key, record)).replicas >= 8,
    );
  for (const node of net.nodes.filter((_, i) => i % 3 === 1)) await net.kill(node);
  for (const [i, { key }] of published.entries())
    assert.equal((await net.at(i % 16).dht.get(key, RECORD.endpoints))?.seq, 1);
  const { key, record } = endpointRecord();
  await eventually('there are enough replicas', async () => (await net.at(3).dht.put(key, record)).replicas >= 8);
});

test('stopped nodes leave the routing tables', async (t) => {
  const net = await DhtTestnet.start(6);
  t.after(() => net[Symbol.asyncDispose]());
  await Promise.all(net.nodes.map(({ dht }) => reached(dht, (r) => r.peers === 5)));
  for (const node of net.nodes.slice(4)) await net.kill(node);
  const { dht } = net.at(0);
  await eventually('only running nodes are left', async () => {
    await dht.get(endpointRecord().key, RECORD.endpoints);
    return dht.reachability().peers === 3;
  });
});

test('stored records and contacts survive a restart', async (t) => {
  const hub = new NodeRequestHub();
  const storeFile = join(temporaryDirectory(t), 'records.db');
  const a = await start(t, {}, hub);
  const listen = { host: '127.0.0.1', port: await quietPort() };
  const first = dhtNode(hub, { storeFile, listen, bootstrap: [a.dht.address] });
  await first.dht.start();
  await reached(first.dht, (r) => r.ready && r.inRoutingTables);
  await reached(a.dht, (r) => r.peers === 1);
  const { key, record } = endpointRecord();
  assert.equal((await a.dht.put(key, record)).replicas, 1);
  await first.dht.stop();
  const again = await start(t, { storeFile, listen }, hub);
  assert.equal(again.dht.usage().records, 1);
  await reached(again.dht, (r) => r.ready);
  assert.equal((await again.dht.get(key, RECORD.endpoints))?.seq, 1);
});

test('a read stores the record on close nodes that lack it', async (t) => {
  const hub = new NodeRequestHub();
  const a = await start(t, {}, hub);
  const { key, record } = endpointRecord();
  await a.dht.put(key, record);
  const b = await start(t, { bootstrap: [a.dht.address] }, hub);
  await reached(b.dht, (r) => r.ready && r.inRoutingTables);
  const c = await start(t, { bootstrap: [a.dht.address] }, hub);
  await reached(c.dht, (r) => r.ready && r.peers === 2);
  assert.equal(b.dht.usage().records, 0);
  assert.equal((await c.dht.get(key, RECORD.endpoints))?.seq, 1);
  await eventually('b stores it too', () => b.dht.usage().records === 1);
});

test('a read sends the newer record to nodes with an older one', async (t) => {
  const net = await DhtTestnet.start(4);
  t.after(() => net[Symbol.asyncDispose]());
  const owner = newIdentity();
  const older = endpointRecord(owner, { seq: 1 });
  await net.at(0).dht.put(older.key, older.record);
  const late = await net.add();
  const apart = await start(t, {}, net.hub);
  const newer = endpointRecord(owner, { seq: 2 });
  await apart.dht.put(newer.key, newer.record);
  for (const { dht } of net.nodes) apart.dht.addNode(dht.address);
  await reached(apart.dht, (r) => r.ready && r.peers >= 4);
  await reached(late.dht, (r) => r.peers >= 5);
  assert.equal((await late.dht.get(newer.key, RECORD.endpoints, { thorough: true }))?.seq, 2);
  await eventually('other nodes have the newer record', async () => {
    const found = await net.at(1).dht.get(newer.key, RECORD.endpoints);
    return found?.seq === 2;
  });
});

test('a port in use is rejected with a clear error', async (t) => {
  const a = await start(t);
  const b = dhtNode(new NodeRequestHub(), { listen: a.dht.address });
  await assert.rejects(b.dht.start(), (error) => error instanceof SvcError && error.code === 'address_in_use');
});

test('a node that starts and stops leaves no handle open', async () => {
  const before = process.getActiveResourcesInfo().length;
  for (let i = 0; i < 20; i++) {
    const net = await DhtTestnet.start(2);
    const { key, record } = endpointRecord();
    await net.at(0).dht.put(key, record);
    await net[Symbol.asyncDispose]();
  }
  await eventually('handles are closed', () => process.getActiveResourcesInfo().length <= before + 1);
});

test('requests in flight settle when the nodes stop', async () => {
  const net = await DhtTestnet.start(3);
  const { key, record } = endpointRecord();
  const work = net.nodes.flatMap(({ dht }) => [
    dht.put(key, record),
    dht.get(key, RECORD.endpoints),
    dht.list(key, []),
    dht.get(endpointRecord().key, RECORD.profile, { thorough: true }),
  ]);
  await net[Symbol.asyncDispose]();
  for (const outcome of await Promise.allSettled<unknown>(work))
    if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof SvcError, String(outcome.reason));
});

test('a node that left the routing tables is found again after it returns without contacts', async (t) => {
  const clock = new LeapClock();
  const hub = new NodeRequestHub();
  const first = await start(t, { clock }, hub);
  await start(t, { bootstrap: [first.dht.address] }, hub);
  const departed = dhtNode(hub, { bootstrap: [first.dht.address] });
  await departed.dht.start();
  await reached(first.dht, (r) => r.peers === 2);
  const listen = departed.dht.address;
  hub.leave(departed.nodeKey);
  await departed.dht.stop();
  await eventually('it left the routing table', async () => {
    await first.dht.put(endpointRecord().key, endpointRecord().record).catch(() => {});
    await first.dht.list(endpointRecord().key, [RECORD.endpoints]);
    return first.dht.reachability().peers === 1;
  });
  const back = await start(t, { listen }, hub);
  assert.equal(back.dht.reachability().peers, 0);
  clock.leap(60_000);
  await reached(first.dht, (r) => r.peers === 2);
});
