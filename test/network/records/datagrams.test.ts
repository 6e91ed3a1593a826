/** A running node that receives arbitrary datagrams. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { encodeCbor } from '../../../src/foundation/cbor.ts';
import { agentKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { COMMAND, encodeFindRequest } from '../../../src/network/records/messages.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import { RECORD_STORE_MIGRATIONS } from '../../../src/network/records/record-store.ts';
import { eventually } from '../../support/eventually.ts';
import { type RawRequest, rawRequest, rawSocket } from '../../support/hostile-dht.ts';
import { newIdentity } from '../../support/identities.ts';
import { NodeRequestHub } from '../../support/memory-node-requests.ts';
import { endpointRecord, testRecord } from '../../support/records.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';
import { DhtTestnet, dhtNode } from '../../support/testnet-dht.ts';

/** Commands of the DHT itself. */
const PING = 0;
const FIND_NODE = 2;

async function network(t: TestContext, count: number): Promise<DhtTestnet> {
  const net = await DhtTestnet.start(count);
  t.after(() => net[Symbol.asyncDispose]());
  return net;
}

test('no datagram crashes a node', async (t) => {
  const net = await network(t, 2);
  const { address } = net.at(0).dht;
  const socket = await rawSocket(t);
  const tag = Buffer.from(networkTag('test'));
  const body = fc.uint8Array({ maxLength: 1300 }).map((bytes) => Buffer.from(bytes));
  const header = fc.tuple(fc.constantFrom(0x03, 0x13), fc.nat(31), fc.nat(255), fc.nat(255)).map((h) => Buffer.from(h));
  const request = fc
    .record({
      command: fc.constantFrom(0, 1, 2, 3, 4, 99),
      internal: fc.boolean(),
      target: fc.uint8Array({ minLength: 32, maxLength: 32 }),
      value: fc.uint8Array({ maxLength: 600 }),
    })
    .map((r) => rawRequest(address, r));
  const datagram = fc.oneof(
    body,
    body.map((b) => Buffer.concat([tag, b])),
    fc.tuple(header, body).map(([h, b]) => Buffer.concat([tag, h, b])),
    request,
  );
  for (const bytes of fc.sample(datagram, { seed: 4121, numRuns: 2000 })) {
    await new Promise<void>((resolve) => socket.send(bytes, address.port, address.host, () => resolve()));
  }
  // Received datagrams are processed first. Datagrams that exceed the receive buffer are lost.
  const asker = await rawSocket(t);
  let answered = false;
  asker.once('message', () => {
    answered = true;
  });
  const value = encodeFindRequest({ types: [], wantsRecords: false });
  const question = rawRequest(address, { command: COMMAND.find, target: new Uint8Array(32), value });
  await eventually('the flood is processed', () => {
    if (!answered) asker.send(question, address.port, address.host);
    return answered;
  });
  const { key, record } = endpointRecord();
  assert.equal((await net.at(1).dht.put(key, record)).replicas, 1);
  assert.equal((await net.at(0).dht.get(key, RECORD.endpoints))?.seq, 1);
});

test('if the disk rejects writes, neither timers nor requests crash the node', async (t) => {
  const clock = new TestClock();
  const file = join(temporaryDirectory(t), 'records.db');
  const { dht } = dhtNode(new NodeRequestHub(), { clock, storeFile: file });
  await dht.start();
  t.after(() => dht.stop());
  const behind = Store.open(file, RECORD_STORE_MIGRATIONS);
  for (const table of ['records', 'removed_notes']) behind.run(`ALTER TABLE ${table} RENAME TO gone_${table}`);
  behind.close();
  clock.advance(180_000);
  const socket = await rawSocket(t);
  const answered = once(socket, 'message');
  for (const wantsRecords of [true, false]) {
    const value = encodeFindRequest({ types: [], wantsRecords });
    socket.send(
      rawRequest(dht.address, { command: COMMAND.find, target: new Uint8Array(32), value }),
      dht.address.port,
    );
  }
  await answered;
});

test('a response to an unverified address is at most three times as long as its request', async (t) => {
  const net = await network(t, 25);
  const owner = newIdentity();
  const key = agentKey(owner.aid);
  const types = [RECORD.endpoints, RECORD.profile, RECORD.encryptionKeys];
  for (const type of types) await net.at(0).dht.put(key, testRecord(owner, type, { payload: new Uint8Array(300) }));
  const { dht } = await eventually('a node stores all three', () =>
    net.nodes.find((node) => node.dht.usage().records === types.length),
  );
  const socket = await rawSocket(t);
  const ask = async (request: RawRequest): Promise<{ readonly asked: number; readonly answered: number }> => {
    const datagram = rawRequest(dht.address, { target: key, ...request });
    const answer = once(socket, 'message');
    socket.send(datagram, dht.address.port, dht.address.host);
    const [{ length }] = (await answer) as [Buffer];
    return { asked: datagram.length, answered: length };
  };
  for (const wantsRecords of [true, false]) {
    const value = encodeFindRequest({ types: [], wantsRecords });
    const padded = await ask({ command: COMMAND.find, value });
    assert.ok(padded.answered <= 3 * padded.asked, `${padded.answered} bytes in response to ${padded.asked}`);
    assert.ok(padded.answered > (wantsRecords ? 800 : 250), `only ${padded.answered} bytes`);
    // Even the shortest response would be longer, so the node answers only the next request.
    const short = encodeCbor({ i: wantsRecords, t: new Uint8Array(), z: new Uint8Array() });
    socket.send(rawRequest(dht.address, { target: key, command: COMMAND.find, value: short }), dht.address.port);
    const { asked, answered } = await ask({ command: PING, internal: true });
    assert.ok(answered <= 3 * asked, `${answered} bytes in response to ${asked}`);
  }
  // The requests of the DHT itself: ping and find node.
  for (const command of [PING, FIND_NODE]) {
    const { asked, answered } = await ask({ command, internal: true });
    assert.ok(answered <= 3 * asked, `${answered} bytes in response to ${asked}`);
    assert.ok(command === PING || answered > 140, 'the response names as many nodes as fit');
  }
});
