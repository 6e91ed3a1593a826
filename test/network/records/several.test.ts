/** Records of one publication on their way: together to nodes that take several, one by one to all others. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { RECORD } from '../../../src/foundation/records/types.ts';
import type { DhtEngine } from '../../../src/network/records/engine.ts';
import {
  COMMAND,
  decodeFindRequest,
  encodeFindReply,
  encodeFindRequest,
  encodeStoreReply,
  type StoreCode,
} from '../../../src/network/records/messages.ts';
import {
  decodeSeveralReply,
  decodeSeveralRequest,
  encodeSeveralReply,
  encodeSeveralRequest,
  fitting,
  MAX_SEVERAL,
} from '../../../src/network/records/several-messages.ts';
import { eventually } from '../../support/eventually.ts';
import { hostileNode } from '../../support/hostile-dht.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord, testRecord } from '../../support/records.ts';
import { DhtTestnet } from '../../support/testnet-dht.ts';

const SMALL = new Uint8Array(20);

interface Keeper {
  readonly engine: DhtEngine;
  /** What came, by the name of the command, and of how many records. */
  readonly came: string[];
}

/** A node of this version or of the one before, which says of every record that comes with others what it is told. */
async function keeper(t: TestContext, isNew: boolean, codes: readonly StoreCode[] = []): Promise<Keeper> {
  const came: string[] = [];
  const held = { count: 0, digest: new Uint8Array(8), records: [], summaries: [], time: Math.floor(Date.now() / 1000) };
  const engine = await hostileNode(t, (request) => {
    const { command, value } = request;
    if (value === null) return;
    if (command === COMMAND.find) {
      assert.equal(decodeFindRequest(value)?.asksVersion, true);
      const nodeKey = new Uint8Array(32).fill(engine.address.port & 255);
      const reply = { nodeKey, quicPort: 0, nodes: [], ...held, ...(isNew ? { takesSeveral: true } : {}) };
      request.reply(encodeFindReply(reply));
    } else if (command === COMMAND.store) {
      came.push('one');
      request.reply(encodeStoreReply({ code: 'kept' }));
    } else if (command === COMMAND.storeSeveral) {
      const records = decodeSeveralRequest(value) ?? [];
      came.push(`${records.length} together`);
      const said = codes.length > 0 ? codes : records.map((): StoreCode => 'kept');
      request.reply(encodeSeveralReply(said));
    }
  });
  return { engine, came };
}

async function networkOf(t: TestContext, keepers: readonly Keeper[]) {
  const net = await DhtTestnet.start(1);
  t.after(() => net[Symbol.asyncDispose]());
  const { dht } = net.at(0);
  const value = encodeFindRequest({ types: [], wantsRecords: false });
  for (const { engine } of keepers)
    await engine.request(dht.address, { command: COMMAND.find, target: new Uint8Array(32), value });
  await eventually('the nodes are known', () => dht.peers().length === keepers.length);
  const owner = newIdentity();
  const { key, record } = endpointRecord(owner, { payload: SMALL });
  const records = [record, testRecord(owner, RECORD.encryptionKeys, { payload: SMALL })];
  /** Publishes both records at once, as one publication does; how many keep each. */
  const publish = async (): Promise<number[]> => {
    const near = dht.near(key, RECORD.endpoints);
    await near.get(RECORD.endpoints, { thorough: true });
    return (await Promise.all(records.map((one) => near.put(one, {})))).map(({ replicas }) => replicas);
  };
  return { publish };
}

test('the records of a publication go together to who takes several, and one by one to nodes of before', async (t) => {
  const [now, before] = [await keeper(t, true), await keeper(t, false)];
  const { publish } = await networkOf(t, [now, before]);
  assert.deepEqual(await publish(), [2, 2]);
  assert.deepEqual(now.came, ['2 together']);
  assert.deepEqual(before.came, ['one', 'one']);
});

test('what was not kept with others goes by itself, where the node says more of it', async (t) => {
  const refusing = await keeper(t, true, ['kept', 'newer']);
  const { publish } = await networkOf(t, [refusing]);
  assert.deepEqual(await publish(), [1, 1]);
  assert.deepEqual(refusing.came, ['2 together', 'one']);
});

test('who answers for more or fewer records than came keeps none of them', async (t) => {
  const odd = [await keeper(t, true, ['kept']), await keeper(t, true, ['kept', 'kept', 'kept'])];
  const { publish } = await networkOf(t, odd);
  assert.deepEqual(await publish(), [0, 0], 'no other node');
  for (const { came } of odd) assert.deepEqual(came, ['2 together']);
});

test('so many go together as a datagram holds', () => {
  const sized = (...bytes: number[]) => bytes.map((length) => ({ encoded: new Uint8Array(length) }));
  assert.equal(fitting(sized(1000)), 1);
  assert.equal(fitting(sized(1000, 200)), 1);
  assert.equal(fitting(sized(500, 500, 500)), 2);
  assert.equal(fitting(sized(10, 10, 10, 10, 10)), MAX_SEVERAL);
  for (const together of [sized(1000, 102), sized(551, 551), sized(366, 366, 366), sized(274, 274, 274, 274)]) {
    assert.equal(fitting(together), together.length);
    const request = encodeSeveralRequest(together);
    assert.ok(request.length <= 1232 - 120, `${request.length}`);
    assert.equal(decodeSeveralRequest(request)?.length, together.length);
  }
});

test('what is no such message is none', () => {
  const record = { encoded: new Uint8Array(5) };
  assert.equal(decodeSeveralRequest(encodeSeveralRequest([])), null);
  assert.equal(decodeSeveralRequest(encodeSeveralRequest([record, record, record, record, record])), null);
  assert.equal(decodeSeveralRequest(encodeSeveralRequest([{ encoded: new Uint8Array(1001) }])), null);
  assert.equal(decodeSeveralReply(encodeSeveralReply([])), null);
  assert.equal(decodeSeveralReply(encodeSeveralReply(['kept', 'kept', 'kept', 'kept', 'kept'])), null);
  assert.equal(decodeSeveralReply(Uint8Array.of(0xa1, 0x61, 0x63, 0x41, 9)), null, 'a code that is none');
  assert.deepEqual(decodeSeveralReply(Uint8Array.of(0xa1, 0x61, 0x63, 0x42, 0, 1)), ['kept', 'newer']);
  assert.deepEqual(Buffer.from(encodeSeveralRequest([record])).toString('hex'), 'a161728145' + '00'.repeat(5));
});
