import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { ClosestNodes } from '../../../src/network/records/closest-nodes.ts';
import type { FindReply } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import type { StoreVerdict } from '../../../src/network/records/node-client.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { nearbyNodes } from '../../../src/network/records/record-dht.ts';
import { RecordReader } from '../../../src/network/records/record-reader.ts';
import { RecordSetFetcher } from '../../../src/network/records/record-set-fetcher.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { FEWEST_REPLICAS, RecordWriter } from '../../../src/network/records/record-writer.ts';
import type { PutResult } from '../../../src/network/records/types.ts';
import { newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODES = 7;
const KEPT: StoreVerdict = { code: 'kept', newer: null, token: null };

/** A node among seven others that answer as the test configures. */
function setUp(
  says: (n: number) => Partial<FindReply> = () => ({}),
  verdict: () => Promise<StoreVerdict> = async () => KEPT,
  answers: (n: number) => Promise<void> | undefined = () => undefined,
) {
  const clock = new TestClock();
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  const store = new RecordStore({ file: ':memory:', maxBytes: 1 << 24 }, { clock, log: silentLog });
  const asked: { types: readonly number[]; wantsRecords: boolean }[] = [];
  const given: string[] = [];
  const others = Array.from({ length: NODES }, (_, n) => nodeAddress(n + 1));
  const search = (
    target: Uint8Array,
    request: { types: readonly number[]; wantsRecords: boolean } = { types: [], wantsRecords: false },
  ): ClosestNodes => {
    asked.push(request);
    return new ClosestNodes(
      { target, width: 20, parallel: 20, enough: 20, start: others },
      {
        clock,
        health: new PeerHealth({ clock }),
        ask: async (to, id) => {
          const n = others.indexOf(to);
          await answers(n);
          return answerOf(to, id, { nodeKey: nodeId(to), ...says(n) });
        },
        skips: () => false,
        isOwnHost: () => false,
      },
    );
  };
  const nodeRequests = { request: async () => new Uint8Array(), onRequest: () => {} };
  const fetcher = new RecordSetFetcher(clock, verifier, nodeRequests, new Uint8Array(8), { ask: async () => null });
  let repairs = 0;
  const reader = new RecordReader(clock, verifier, store, { forRead: search }, fetcher, {
    onRead: () => void repairs++,
  });
  const writer = new RecordWriter(
    clock,
    verifier,
    store,
    { ownAddress: null, peerCount: NODES, closerThanSelf: () => NODES },
    { forWrite: search },
    {
      store: async (at) => {
        given.push(at.address.host);
        return await verdict();
      },
      removeNotes: async () => 0,
    },
  );
  const near = (key: Uint8Array, type: number | null) =>
    nearbyNodes(key, type, { searches: { forWrite: search }, reader, writer });
  const record = (seq: number, by = agent) => endpointRecord(by, { timestamp: unixSeconds(clock), seq });
  const agent = newIdentity();
  return { clock, asked, given, near, record, repairs: () => repairs };
}

test('a read and the writes after it share one lookup, and every node receives all records', async () => {
  const world = setUp();
  const { key, record } = world.record(1);
  const nearby = world.near(key, RECORD.endpoints);
  assert.equal(await nearby.get(RECORD.endpoints, { thorough: true }), null);
  const results = await Promise.all([nearby.put(record, {}), nearby.put(world.record(2).record, {})]);
  assert.deepEqual(
    results.map(({ replicas }) => replicas),
    [NODES, NODES],
  );
  assert.deepEqual(world.asked, [{ types: [RECORD.endpoints], wantsRecords: true }]);
  assert.equal(world.given.length, 2 * NODES);
});

test('a read returns the newest record that any node stores, and repairs nothing', async () => {
  const held: Uint8Array[] = [];
  const world = setUp((n) => (n === NODES - 1 && held.length > 0 ? { count: 1, records: held } : {}));
  const { key, record } = world.record(7);
  held.push(record.encoded);
  const found = await world.near(key, RECORD.endpoints).get(RECORD.endpoints, { thorough: true });
  assert.equal(found?.seq, 7);
  assert.equal(world.repairs(), 0);
});

test('a lookup without a type requests no records, and reading a type takes another lookup', async () => {
  const world = setUp();
  const { key, record } = world.record(1);
  const nearby = world.near(key, null);
  assert.equal((await nearby.put(record, {})).replicas, NODES);
  await nearby.get(RECORD.endpoints, {});
  assert.deepEqual(
    world.asked.map(({ wantsRecords }) => wantsRecords),
    [false, true],
  );
});

test('after the tokens of a lookup may have expired, a write starts another lookup', async () => {
  const world = setUp();
  const { key, record } = world.record(1);
  const nearby = world.near(key, RECORD.endpoints);
  await nearby.get(RECORD.endpoints, {});
  await world.clock.run(5000);
  assert.equal((await nearby.put(record, {})).replicas, NODES);
  assert.equal(world.asked.length, 2);
});

test('a stopped lookup sends its records to no node', async () => {
  const world = setUp();
  const { key, record } = world.record(1);
  const nearby = world.near(key, RECORD.endpoints);
  nearby.stop();
  assert.equal((await nearby.put(record, {})).replicas, 0);
  assert.deepEqual(world.given, []);
});

test('a put with `onWhole` returns after half of the nodes acknowledged; other puts wait for all', async () => {
  const answers: ((verdict: StoreVerdict) => void)[] = [];
  const world = setUp(undefined, () => new Promise((resolve) => answers.push(resolve)));
  const { key, record } = world.record(1);
  const nearby = world.near(key, null);
  await idle();
  const whole: PutResult[] = [];
  const results: number[] = [];
  const early = nearby.put(record, { onWhole: (result) => whole.push(result) });
  const patient = nearby.put(world.record(2).record, {});
  patient.then(({ replicas }) => results.push(replicas)).catch(assert.fail);
  await idle();
  assert.equal(answers.length, 2 * NODES, 'all nodes receive both records concurrently');
  for (const answer of answers.slice(0, FEWEST_REPLICAS - 1)) answer(KEPT);
  for (const answer of answers.slice(NODES, 2 * NODES - 1)) answer(KEPT);
  await idle();
  answers[FEWEST_REPLICAS - 1]?.(KEPT);
  assert.equal((await early).replicas, FEWEST_REPLICAS);
  assert.deepEqual([whole, results], [[], []]);
  answers[FEWEST_REPLICAS]?.({ code: 'full', newer: null, token: null });
  for (const answer of answers.slice(FEWEST_REPLICAS + 1)) answer(KEPT);
  assert.equal((await patient).replicas, NODES);
  await idle();
  assert.deepEqual(whole, [{ replicas: NODES - 1, newer: null, refused: { full: 1 } }]);
});

test('`onWhole` is not called if all nodes answered in time, and does not wait for a silent node', async () => {
  const world = setUp();
  const { key, record } = world.record(1);
  const whole: PutResult[] = [];
  const onWhole = (result: PutResult): void => void whole.push(result);
  const { replicas } = await world.near(key, null).put(record, { onWhole });
  await idle();
  assert.equal(whole.at(-1)?.replicas ?? replicas, NODES);
  let calls = 0;
  const slow = setUp(undefined, () => (++calls > FEWEST_REPLICAS ? new Promise(() => {}) : Promise.resolve(KEPT)));
  const next = slow.record(1);
  whole.length = 0;
  assert.equal((await slow.near(next.key, null).put(next.record, { onWhole })).replicas, FEWEST_REPLICAS);
  assert.deepEqual(whole, []);
  await slow.clock.run(1000);
  await idle();
  assert.deepEqual(whole, [{ replicas: FEWEST_REPLICAS, newer: null, refused: {} }]);
});

test('a put does not wait if only silent nodes are left', async () => {
  let calls = 0;
  const silent = setUp(undefined, () => (++calls <= FEWEST_REPLICAS ? new Promise(() => {}) : Promise.resolve(KEPT)));
  const { key, record } = silent.record(1);
  const nearby = silent.near(key, null);
  await idle();
  const put = nearby.put(record, { onWhole: () => {} });
  await idle();
  assert.equal(silent.given.length, NODES);
  await silent.clock.run(1000);
  assert.equal((await put).replicas, NODES - FEWEST_REPLICAS);
});

test('an aborted put sends its record to no further node', async () => {
  const given = new AbortController();
  const answers = Array.from({ length: NODES }, () => Promise.withResolvers<void>());
  const world = setUp(undefined, undefined, (n) => answers[n]?.promise);
  const { key, record } = world.record(1);
  const put = world.near(key, null).put(record, { onWhole: () => {}, signal: given.signal });
  answers[0]?.resolve();
  await idle();
  assert.equal(world.given.length, 1);
  given.abort(new Error('aborted'));
  await assert.rejects(put);
  for (const { resolve } of answers) resolve();
  await idle();
  assert.equal(world.given.length, 1);
});

test('a clock that was set back ages no lookup: a write uses the one that has just ended', async () => {
  const world = setUp();
  const nearby = world.near(world.record(1).key, null);
  await idle();
  world.clock.jump(-1000);
  const { record } = world.record(1);
  assert.equal((await nearby.put(record, {})).replicas, NODES);
  assert.equal(world.asked.length, 1);
});
