import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import {
  decodeFindReply,
  decodePage,
  decodeStoreReply,
  encodeNodeRequest,
  type FindRequest,
} from '../../../src/network/records/messages.ts';
import { hostKeyOf, networkTag } from '../../../src/network/records/node-address.ts';
import { type Asking, RecordHost, UNPROVEN_ROWS } from '../../../src/network/records/record-host.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord, largeRecord, noteRecord, type Published, serviceRecord } from '../../support/records.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

const TAG = networkTag('test');

class World {
  readonly clock = new TestClock();
  readonly store: RecordStore;
  readonly host: RecordHost;
  closer = 0;

  constructor(file = ':memory:') {
    this.store = new RecordStore({ file, maxBytes: 64 * 1024 * 1024 }, { clock: this.clock, log: silentLog });
    this.host = new RecordHost(
      { nodeKey: new Uint8Array(32), tag: TAG },
      this.clock,
      silentLog,
      new RecordVerifier({}, { delegations: new DelegationVerifier() }),
      () => 0,
      this.store,
      { ownAddress: { host: source(250), port: 4121 }, closest: () => [], closerThanSelf: () => this.closer },
    );
  }

  get now(): number {
    return unixSeconds(this.clock);
  }

  async find(key: Uint8Array, request: FindRequest, asking: Asking): Promise<Uint8Array> {
    const answer = await this.host.find(key, request, asking);
    assert.ok(answer !== null && answer !== 'prove');
    return answer;
  }

  async offer(key: Uint8Array, encoded: Uint8Array, from: string): Promise<string | undefined> {
    return decodeStoreReply(await this.host.store(key, encoded, from, 1000))?.code;
  }
}

function source(n: number): string {
  return `198.52.100.${n}`;
}

test('an address can store a burst of records, then as many as its rate allows', async () => {
  const world = new World();
  const junk = new Uint8Array(10);
  const key = new Uint8Array(32);
  const fromPort = (port: number): string => hostKeyOf({ host: '198.52.100.1', port });
  for (let i = 0; i < 1500; i++) assert.equal(await world.offer(key, junk, fromPort(i)), 'bad');
  assert.equal(await world.offer(key, junk, source(1)), 'limited');
  assert.equal(await world.offer(key, junk, source(2)), 'bad');
  world.clock.advance(20);
  assert.equal(await world.offer(key, junk, source(1)), 'bad');
  assert.equal(await world.offer(key, junk, source(1)), 'limited');
});

test('the addresses of one network share a limit for records, and leave other networks theirs', async () => {
  const world = new World();
  const offer = (from: string) => world.offer(new Uint8Array(32), new Uint8Array(10), from);
  for (let i = 0; i < 4500; i++) assert.equal(await offer(source(i % 200)), 'bad');
  assert.equal(await offer(source(201)), 'limited');
  assert.equal(await offer('198.53.100.1'), 'bad');
  assert.equal(await offer('127.0.0.1:4121'), 'bad');
});

test('a flood of records from many networks is verified at a limited rate', async () => {
  const world = new World();
  const { key, record } = endpointRecord(newIdentity(), { timestamp: world.now });
  const codes = await Promise.all(
    Array.from({ length: 300 }, (_, i) => world.offer(key, record.encoded, source(i % 256))),
  );
  assert.equal(codes.filter((code) => code === 'kept').length, 256);
  assert.equal(codes.filter((code) => code === 'limited').length, 44);
  assert.equal(await world.offer(key, record.encoded, source(1)), 'kept');
});

test('a note is acknowledged once it is on disk, and rejected if the disk write fails', async (t) => {
  const flushes: ((error: Error | null) => void)[] = [];
  t.mock.method(fs, 'fdatasync', (_file: number, done: (error: Error | null) => void) => void flushes.push(done));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const world = new World(join(temporaryDirectory(t), 'records.db'));
  t.after(() => world.store.close());
  const put = ({ key, record }: Published) => world.offer(key, record.encoded, source(1));
  const endpoint = endpointRecord(newIdentity(), { timestamp: world.now });
  assert.equal(await put(endpoint), 'kept', 'acknowledged early because its publisher renews it');
  assert.equal(flushes.length, 0);
  for (const [error, code] of [
    [null, 'kept'],
    [new Error('disk failure'), 'full'],
  ] as const) {
    let answer: string | undefined;
    const answered = put(noteRecord(newIdentity(), 200, { timestamp: world.now })).then((is) => (answer = is));
    await eventually('the note is flushed', () => flushes.length === 1);
    assert.equal(answer, undefined);
    flushes.pop()?.(error);
    await answered;
    assert.equal(answer, code);
  }
});

test('a node that knows many closer nodes rejects a record', async () => {
  const world = new World();
  const { key, record } = endpointRecord(newIdentity(), { timestamp: world.now });
  world.closer = 60;
  assert.equal(await world.offer(key, record.encoded, source(1)), 'misplaced');
  world.closer = 59;
  assert.equal(await world.offer(key, record.encoded, source(1)), 'kept');
});

test('over QUIC a node accepts large records and returns pages, for its own network only and rate-limited', async () => {
  const world = new World();
  const { key, record } = largeRecord(newIdentity(), { timestamp: world.now });
  const store = { kind: 'store', tag: TAG, key, record: record.encoded } as const;
  const answer = async (body: Uint8Array, n = 1) => await world.host.answerNode(body, source(n));
  assert.equal((await answer(encodeNodeRequest({ ...store, tag: networkTag('other') }))).length, 0);
  assert.equal((await answer(new Uint8Array(50))).length, 0);
  assert.equal(world.store.usage().records, 0);
  assert.deepEqual(decodeStoreReply(await answer(encodeNodeRequest(store))), { code: 'kept' });
  const page = encodeNodeRequest({ kind: 'page', tag: TAG, key, types: [RECORD.profile], from: 0 });
  for (let i = 0; i < 200; i++) assert.equal(decodePage(await answer(page))?.records.length, 1);
  assert.equal((await answer(page)).length, 0);
  assert.equal(decodePage(await answer(page, 2))?.records.length, 1);
});

test('pages are built one per event loop turn, so other work runs in between', async (t) => {
  const world = new World();
  const { key, record } = endpointRecord(newIdentity(), { timestamp: world.now });
  assert.equal(await world.offer(key, record.encoded, source(1)), 'kept');
  const made = t.mock.method(world.store, 'page').mock;
  const page = encodeNodeRequest({ kind: 'page', tag: TAG, key, types: [], from: 0 });
  const answers = Array.from({ length: 5 }, (_, i) => world.host.answerNode(page, source(i)));
  for (let before = 0; before < answers.length; before = made.callCount()) {
    await nextTurn();
    assert.ok(made.callCount() <= before + 1, `${made.callCount() - before} pages in one turn`);
  }
  for (const answer of await Promise.all(answers)) assert.equal(decodePage(answer)?.records.length, 1);
});

test('a response never exceeds the limit of its request, independent of the stored records', async () => {
  const world = new World();
  const key = serviceKey('lang.translate');
  for (let i = 0; i < 50; i++)
    world.store.offer(key, serviceRecord('lang.translate', newIdentity(), { timestamp: world.now }).record, 'a');
  for (const wantsRecords of [true, false])
    for (const requestBytes of [30, 60, 70, 100, 200, 411, 1200]) {
      const asking = { from: source(1), bytes: requestBytes, proven: false };
      const reply = await world.host.find(key, { types: [], wantsRecords }, asking);
      assert.ok(reply !== 'prove');
      // A response always contains a count, a digest and the node key. If these do not fit, there is no response.
      assert.equal(reply === null, requestBytes <= 60, `${requestBytes}`);
      const length = reply === null ? 0 : reply.length + 120;
      assert.ok(length <= Math.min(1172, 3 * requestBytes), `${length} bytes in response to ${requestBytes}`);
    }
  const proven = await world.find(key, { types: [], wantsRecords: true }, { from: source(1), bytes: 30, proven: true });
  assert.ok(proven.length > 500);
});

test('a response includes a record as soon as it fits, to the byte', async () => {
  const world = new World();
  // The rest of the response: the datagram, the reply without records, and the length of the record.
  const around = 120 + 97 + 3;
  const published = [500, 501, 502].map((bytes) =>
    endpointRecord(newIdentity(), { timestamp: world.now, payload: new Uint8Array(bytes) }),
  );
  const fitting = published.find(({ record }) => (record.encoded.length + around) % 3 === 0);
  assert.ok(fitting);
  world.store.offer(fitting.key, fitting.record, 'a');
  const least = (fitting.record.encoded.length + around) / 3;
  const records = async (bytes: number): Promise<number | undefined> => {
    const asking = { from: source(1), bytes, proven: false };
    return decodeFindReply(await world.find(fitting.key, { types: [], wantsRecords: true }, asking))?.records.length;
  };
  assert.deepEqual(await Promise.all([least - 1, least].map(records)), [0, 1]);
});

/** A key with this many records that are not cached yet. */
function fill(world: World, name: string, count: number): Uint8Array {
  const key = serviceKey(name);
  for (let i = 0; i < count; i++)
    world.store.offer(key, serviceRecord(name, newIdentity(), { timestamp: world.now }).record, `${i}`);
  return key;
}

test('a key is read from the database once, independent of the requested parts and types', async (t) => {
  const world = new World();
  const key = fill(world, 'lang.translate', 50);
  const read = t.mock.method(Store.prototype, 'all');
  for (let i = 0; i < 200; i++) {
    const types = i % 2 === 0 ? [RECORD.service, 1 + (i % 15)] : [1 + (i % 15), RECORD.service];
    const part = { index: i % 40, of: 40 };
    await world.find(key, { types, wantsRecords: true, part }, { from: source(1), bytes: 400, proven: true });
  }
  assert.equal(read.mock.callCount(), 1);
  const whole = { types: [RECORD.service], wantsRecords: true };
  const asking = { from: source(1), bytes: 400, proven: true };
  assert.equal(decodeFindReply(await world.find(key, whole, asking))?.count, 50);
  fill(world, 'lang.translate', 1);
  assert.equal(decodeFindReply(await world.find(key, whole, asking))?.count, 51);
});

test('a record that fits in a datagram is read from the database once', async (t) => {
  const world = new World();
  const key = fill(world, 'lang.translate', 2);
  const read = t.mock.method(Store.prototype, 'one');
  const request = { types: [], wantsRecords: true };
  const asking = { from: source(1), bytes: 1200, proven: true };
  for (let i = 0; i < 50; i++) assert.equal(decodeFindReply(await world.find(key, request, asking))?.records.length, 2);
  assert.equal(read.mock.callCount(), 2);
});

test('records that arrive together are stored a few per event loop turn, so other work runs in between', async (t) => {
  const world = new World();
  const offer = t.mock.method(world.store, 'offer');
  const key = serviceKey('lang.translate');
  const records = Array.from({ length: 100 }, () =>
    serviceRecord('lang.translate', newIdentity(), { timestamp: world.now }),
  );
  let most = 0;
  let before = 0;
  const look = (): void => {
    const count = offer.mock.callCount();
    most = Math.max(most, count - before);
    before = count;
    if (count < records.length) setImmediate(look);
  };
  look();
  const codes = await Promise.all(records.map(({ record }) => world.offer(key, record.encoded, source(1))));
  assert.ok(codes.every((code) => code === 'kept'));
  assert.equal(most, 4);
});

test('a client that exceeds its share of database reads gets no response until its budget refills', async () => {
  const world = new World();
  const request = { types: [], wantsRecords: true };
  const ask = (n: number, key: Uint8Array) =>
    world.host.find(key, request, { from: source(n), bytes: 400, proven: true });
  const key = (i: number): Uint8Array => new Uint8Array(32).fill(i >> 8).fill(i & 255, 16);
  let answered = 0;
  while ((await ask(1, key(answered))) !== null) answered++;
  assert.equal(answered, 2000);
  assert.ok((await ask(1, key(0))) !== null, 'cached records are free');
  assert.ok(
    await world.host.find(key(9999), { types: [], wantsRecords: false }, { from: source(1), bytes: 90, proven: true }),
  );
  assert.ok((await ask(2, key(answered))) !== null, 'another address has its own share');
  world.clock.advance(1);
  assert.ok((await ask(1, key(answered + 1))) !== null);
  assert.equal(await ask(1, key(answered + 2)), null);
});

/** A key with 511 rows that is read from the database each time. */
function changingKey(world: World) {
  const key = fill(world, 'lang.translate', 500);
  const owner = newIdentity();
  let seq = 0;
  return async (from: string, proven: boolean): Promise<Uint8Array | null | 'prove'> => {
    // Any change under a key invalidates its cache.
    const { record } = serviceRecord('lang.translate', owner, { timestamp: world.now, seq: ++seq });
    assert.equal(world.store.offer(key, record, 'owner').code, 'kept');
    return await world.host.find(key, { types: [], wantsRecords: true }, { from, bytes: 400, proven });
  };
}

test('found rows count against a proven address and its network', async () => {
  const read = changingKey(new World());
  const counts: number[] = [];
  for (const from of [source(1), source(2), source(3)]) {
    let reads = 0;
    while ((await read(from, true)) !== null) assert.ok(++reads < 1000);
    counts.push(reads);
  }
  // 511 rows each: 20,000 for an address, 40,000 for a network.
  assert.deepEqual(counts, [40, 39, 0]);
});

test('unproven addresses share a small budget, and proven ones have another', async () => {
  const world = new World();
  const read = changingKey(world);
  const answers: (Uint8Array | null | 'prove')[] = [];
  for (let i = 0; i < 200; i++) answers.push(await read(`20.${i}.1.1`, false));
  assert.equal(answers.filter((answer) => answer !== 'prove').length, Math.ceil(UNPROVEN_ROWS.burst / 511));
  assert.ok(!answers.includes(null));
  for (let i = 0; i < 40; i++) {
    const small = new Uint8Array(32).fill(i + 1);
    const request = { types: [], wantsRecords: true };
    assert.ok((await world.find(small, request, { from: source(1), bytes: 400, proven: true })).length > 0);
  }
  world.clock.advance(1000);
  assert.notEqual(await read('21.1.1.1', false), 'prove');
});
