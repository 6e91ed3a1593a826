import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { decodeStoreReply } from '../../../src/network/dht/messages.ts';
import { decodePage, encodeNodeRequest } from '../../../src/network/dht/node-messages.ts';
import { RecordHost } from '../../../src/network/dht/record-host.ts';
import { RecordStore } from '../../../src/network/dht/record-store.ts';
import { networkTag } from '../../../src/network/dht/wire.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord, largeRecord, serviceRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const TAG = networkTag('test');

class World {
  readonly clock = new TestClock();
  readonly store = new RecordStore({ file: ':memory:', maxBytes: 64 * 1024 * 1024 }, { clock: this.clock });
  readonly host: RecordHost;
  closer = 0;

  constructor() {
    this.host = new RecordHost(
      { nodeKey: new Uint8Array(32), tag: TAG },
      {
        clock: this.clock,
        log: silentLog,
        store: this.store,
        verifier: new RecordVerifier({}, { delegations: new DelegationVerifier() }),
        quicPort: () => 0,
        engine: { ownAddress: address(250), closest: () => [], closerThanSelf: () => this.closer },
      },
    );
  }

  get now(): number {
    return unixSeconds(this.clock);
  }

  async offer(key: Uint8Array, encoded: Uint8Array, from: Address): Promise<string | undefined> {
    return decodeStoreReply(await this.host.store(key, encoded, from, 1000))?.code;
  }
}

function address(n: number): Address {
  return { host: `198.52.100.${n}`, port: 4121 };
}

test('one address hands over so many records, and then as many as flow back', async () => {
  const world = new World();
  const junk = new Uint8Array(10);
  const key = new Uint8Array(32);
  for (let i = 0; i < 1500; i++) assert.equal(await world.offer(key, junk, { host: '198.52.100.1', port: i }), 'bad');
  assert.equal(await world.offer(key, junk, address(1)), 'limited');
  assert.equal(await world.offer(key, junk, address(2)), 'bad');
  world.clock.advance(20);
  assert.equal(await world.offer(key, junk, address(1)), 'bad');
  assert.equal(await world.offer(key, junk, address(1)), 'limited');
});

test('a flood of records from everywhere is verified only so fast', async () => {
  const world = new World();
  const { key, record } = endpointRecord(newIdentity(), { timestamp: world.now });
  const codes = await Promise.all(
    Array.from({ length: 300 }, (_, i) => world.offer(key, record.encoded, address(i % 256))),
  );
  assert.equal(codes.filter((code) => code === 'kept').length, 256);
  assert.equal(codes.filter((code) => code === 'limited').length, 44);
  assert.equal(await world.offer(key, record.encoded, address(1)), 'kept');
});

test('a record is refused by a node that knows many closer ones', async () => {
  const world = new World();
  const { key, record } = endpointRecord(newIdentity(), { timestamp: world.now });
  world.closer = 20;
  assert.equal(await world.offer(key, record.encoded, address(1)), 'misplaced');
  world.closer = 19;
  assert.equal(await world.offer(key, record.encoded, address(1)), 'kept');
});

test('over QUIC it takes large records and gives pages, to its own network only and not too often', async () => {
  const world = new World();
  const { key, record } = largeRecord(newIdentity(), { timestamp: world.now });
  const store = { kind: 'store', tag: TAG, key, record: record.encoded } as const;
  const answer = async (body: Uint8Array, n = 1) => await world.host.answerNode(body, address(n));
  assert.equal((await answer(encodeNodeRequest({ ...store, tag: networkTag('other') }))).length, 0);
  assert.equal((await answer(new Uint8Array(50))).length, 0);
  assert.equal(world.store.usage().records, 0);
  assert.deepEqual(decodeStoreReply(await answer(encodeNodeRequest(store))), { code: 'kept' });
  const page = encodeNodeRequest({ kind: 'page', tag: TAG, key, types: [RECORD.profile], from: 0 });
  for (let i = 0; i < 200; i++) assert.equal(decodePage(await answer(page))?.records.length, 1);
  assert.equal((await answer(page)).length, 0);
  assert.equal(decodePage(await answer(page, 2))?.records.length, 1);
});

test('an answer never outgrows what its asker may get, whatever is held', () => {
  const world = new World();
  const key = serviceKey('lang.translate');
  for (let i = 0; i < 50; i++)
    world.store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp: world.now }).record, 'a');
  for (const wantsRecords of [true, false])
    for (const requestBytes of [30, 60, 100, 200, 411, 1200]) {
      const reply = world.host.find(key, { types: [], wantsRecords }, requestBytes, false);
      // A count, a digest and the node's key are always told: an answer shorter than that is none.
      assert.ok(
        reply.length <= Math.max(90, Math.min(1232, 3 * requestBytes) - 120),
        `${reply.length} to ${requestBytes}`,
      );
    }
  const proven = world.host.find(key, { types: [], wantsRecords: true }, 30, true);
  assert.ok(proven.length > 500);
});
