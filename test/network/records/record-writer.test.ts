import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { REPLICAS } from '../../../src/foundation/domain/directory.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { ClosestNodes, LARGE_STORE_WIDTH, STORE_WIDTH } from '../../../src/network/records/closest-nodes.ts';
import { decodeRemoveRequest, MAX_REMOVALS } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import type { StoreVerdict } from '../../../src/network/records/node-client.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { KNOWN_NODES_MS, RecordWriter } from '../../../src/network/records/record-writer.ts';
import { delegateAnew } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord, largeRecord, removableNote } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEPT: StoreVerdict = { code: 'kept', newer: null, token: null };

/** One node among thirty simulated nodes. */
class World {
  readonly clock = new TestClock();
  readonly store = new RecordStore(
    { file: ':memory:', maxBytes: 64 * 1024 * 1024 },
    { clock: this.clock, log: silentLog },
  );
  readonly engine = { ownAddress: nodeAddress(0), closer: 0, peerCount: 30, closerThanSelf: () => this.engine.closer };
  readonly others = Array.from({ length: 30 }, (_, n) => nodeAddress(n + 1));
  /** The hosts that received a request, in order. */
  readonly given: string[] = [];
  readonly removals: number[] = [];
  readonly writing: RecordWriter;
  searches = 0;
  readonly withoutToken = new Set<string>();
  /** Delays the answers of searches. */
  heard: Promise<void> = Promise.resolve();
  #identities = 10;
  /** The answer of each other node to a record. */
  verdict: () => Promise<StoreVerdict | null> = async () => KEPT;

  constructor() {
    this.writing = new RecordWriter(
      this.clock,
      new RecordVerifier({}, { delegations: new DelegationVerifier() }),
      this.store,
      this.engine,
      {
        forWrite: (key) => this.#search(key),
      },
      {
        store: async (at) => {
          this.given.push(at.address.host);
          return await this.verdict();
        },
        removeNotes: async (_at, _key, value) => {
          this.removals.push(decodeRemoveRequest(value)?.length ?? 0);
          return 1;
        },
      },
    );
  }

  #search(target: Uint8Array): ClosestNodes {
    this.searches++;
    return new ClosestNodes(
      { target, width: 20, parallel: 20, enough: 8, start: this.others },
      {
        clock: this.clock,
        health: new PeerHealth({ clock: this.clock }),
        // Each node has its own key.
        ask: async (to, id) => {
          await this.heard;
          const answer = answerOf(to, id, { nodeKey: nodeId(to) });
          return this.withoutToken.has(to.host) ? { ...answer, token: null } : answer;
        },
        skips: () => false,
        isOwnHost: () => false,
      },
    );
  }

  get details(): { readonly timestamp: number } {
    return { timestamp: unixSeconds(this.clock) };
  }

  /** Fixed keys: near a random key nodes may be crowded, and then more nodes receive the record. */
  identity() {
    return delegateAnew(KeyPair.fromSeed(new Uint8Array(32).fill(++this.#identities)), unixSeconds(this.clock));
  }
}

test('a record is sent to the closest nodes, a large record to fewer of them', async () => {
  for (const [make, width] of [
    [endpointRecord, STORE_WIDTH],
    [largeRecord, LARGE_STORE_WIDTH],
  ] as const) {
    const world = new World();
    world.engine.closer = 30;
    const { key, record } = make(world.identity(), world.details);
    const { replicas, newer, refused } = await world.writing.put(key, record);
    assert.ok(replicas >= REPLICAS && replicas <= width, `${replicas} replicas`);
    assert.deepEqual([newer, refused], [null, {}]);
    await idle();
    // Up to as many nodes again were among the closest when they answered.
    assert.ok(world.given.length >= width && world.given.length <= 2 * width, `sent to ${world.given.length} nodes`);
    assert.equal(world.store.usage().records, 0, 'other nodes are closer');
  }
});

test('a writer that states a width sends the record to fewer nodes', async () => {
  const width = 4;
  for (const [closer, own] of [
    [width - 1, 1],
    [width, 0],
  ] as const) {
    const world = new World();
    world.engine.closer = closer;
    const { key, record } = endpointRecord(world.identity(), world.details);
    const { replicas } = await world.writing.put(key, record, { width });
    await idle();
    assert.ok(replicas >= width && world.given.length <= 2 * width, `sent to ${world.given.length} nodes`);
    assert.equal(world.store.usage().records, own);
  }
});

test('a node that is among the closest, or alone, stores its own record. This is not counted as a replica', async () => {
  const world = new World();
  world.verdict = async () => ({ code: 'full', newer: null, token: null });
  const [close, far, alone] = [0, 1, 2].map(() => endpointRecord(world.identity(), world.details));
  assert.ok(close && far && alone);
  const reported: number[] = [];
  const put = async ({ key, record }: typeof close) => {
    const { replicas, isHere } = await world.writing.put(key, record, { onKept: (now) => reported.push(now) });
    return { replicas, isHere };
  };
  world.engine.closer = STORE_WIDTH - 1;
  assert.deepEqual(await put(close), { replicas: 0, isHere: true });
  world.engine.closer = STORE_WIDTH;
  assert.deepEqual(await put(far), { replicas: 0, isHere: undefined });
  world.engine.peerCount = 0;
  assert.deepEqual(await put(alone), { replicas: 0, isHere: true });
  assert.deepEqual(reported, []);
  assert.equal(world.store.usage().records, 2);
});

test('a record is sent to other nodes before it is stored here, and concurrent records are stored in one transaction', async (t) => {
  const world = new World();
  const steps: string[] = [];
  const { store } = world;
  const transaction = t.mock.method(store, 'transaction');
  const offer = store.offer.bind(store);
  t.mock.method(store, 'offer', (...given: Parameters<typeof offer>) => {
    steps.push(`stored after ${world.given.length > 0 ? 'sending' : 'nothing'}`);
    return offer(...given);
  });
  const owner = world.identity();
  const records = [endpointRecord(owner, world.details), endpointRecord(world.identity(), world.details)];
  const results = await Promise.all(records.map(({ key, record }) => world.writing.put(key, record)));
  assert.ok(results.every(({ replicas }) => replicas >= REPLICAS));
  await idle();
  assert.deepEqual(steps, Array(2).fill('stored after sending'));
  assert.equal(store.usage().records, 2);
  assert.equal(transaction.mock.callCount(), 3, 'one outer transaction with both records');
});

test('a failure to store its own record is reported', async (t) => {
  const world = new World();
  world.verdict = () => new Promise(() => {});
  t.mock.method(world.store, 'offer', () => {
    throw new SvcError('not_writable');
  });
  const { key, record } = endpointRecord(world.identity(), world.details);
  await assert.rejects(world.writing.put(key, record), { code: 'not_writable' });
});

test('a newer record in the local store stops a put before it begins', async () => {
  const world = new World();
  const owner = world.identity();
  const newer = endpointRecord(owner, { ...world.details, seq: 2 });
  const older = endpointRecord(owner, { ...world.details, seq: 1 });
  world.store.offer(newer.key, newer.record, 'a host');
  const result = await world.writing.put(older.key, older.record);
  assert.equal(result.replicas, 0);
  assert.deepEqual(result.newer?.encoded, newer.record.encoded);
  assert.deepEqual(result.refused, { newer: 1 });
  assert.equal(world.searches, 0);
});

test('a misplaced or expired record is sent to no node', async () => {
  const world = new World();
  const { key, record } = endpointRecord(world.identity(), world.details);
  const elsewhere = mailboxKey(world.identity().aid);
  await assert.rejects(world.writing.put(elsewhere, record), { code: 'bad_record' });
  world.clock.jump(2 * 3600_000);
  await assert.rejects(world.writing.put(key, record), { code: 'bad_record' });
  assert.equal(world.searches, 0);
  assert.equal(world.store.usage().records, 0);
});

test('a put has a deadline, and can be aborted', async () => {
  const world = new World();
  world.engine.closer = 30;
  world.verdict = () => new Promise(() => {});
  const { key, record } = endpointRecord(world.identity(), world.details);
  let result: unknown = null;
  void world.writing.put(key, record).then((given) => {
    result = given;
  });
  await idle();
  await world.clock.run(9999);
  assert.equal(result, null);
  await world.clock.run(1);
  assert.deepEqual(result, { replicas: 0, newer: null, refused: {} });
  const caller = new AbortController();
  const given = world.writing.put(key, record, { signal: caller.signal });
  await idle();
  caller.abort();
  await assert.rejects(given, { code: 'cancelled' });
});

test('a stall of this node does not count against other nodes', async () => {
  const world = new World();
  world.engine.closer = 30;
  const verdicts: ((verdict: StoreVerdict | null) => void)[] = [];
  world.verdict = () => new Promise((resolve) => verdicts.push(resolve));
  const { key, record } = endpointRecord(world.identity(), world.details);
  const given = world.writing.put(key, record);
  await idle();
  verdicts.shift()?.(KEPT);
  await idle();
  world.clock.jump(60_000);
  await world.clock.run(0);
  // The other nodes were not silent: this node was not running.
  for (const resolve of verdicts) resolve(KEPT);
  assert.ok((await given).replicas >= REPLICAS);
});

test('notes are removed here and at the closest nodes, in requests of limited size', async () => {
  const world = new World();
  const recipient = world.identity();
  const removals = Array.from({ length: MAX_REMOVALS + 1 }, (_, n) => {
    const token = new Uint8Array(16).fill(n);
    const { key, record } = removableNote(recipient, token, world.details);
    world.store.offer(key, record, 'a host');
    return { digest: recordDigest(record.encoded), token };
  });
  const removed = await world.writing.removeNotes(mailboxKey(recipient.aid), removals);
  assert.equal(world.store.usage().records, 0);
  assert.deepEqual(world.removals, [...Array(20).fill(MAX_REMOVALS), ...Array(20).fill(1)]);
  assert.equal(removed, removals.length + 40);
});

test('a node that issued no token for this address receives no record', async () => {
  const world = new World();
  world.engine.closer = 30;
  for (const { host } of world.others.slice(0, 28)) world.withoutToken.add(host);
  const { key, record } = endpointRecord(world.identity(), world.details);
  const { replicas } = await world.writing.put(key, record);
  await idle();
  assert.ok(world.given.every((host) => !world.withoutToken.has(host)));
  assert.equal(replicas, world.given.length);
});

test('the nodes that kept a record get the next one while the search still runs, for some minutes', async () => {
  const world = new World();
  world.engine.closer = 30;
  const owner = world.identity();
  const put = async (seq: number) => {
    const { key, record } = endpointRecord(owner, { ...world.details, seq });
    return await world.writing.put(key, record);
  };
  await put(1);
  await idle();
  const kept = new Set(world.given.splice(0));
  const search = Promise.withResolvers<void>();
  world.heard = search.promise;
  const { replicas } = await put(2);
  assert.ok(replicas >= REPLICAS, 'before the search has an answer');
  assert.ok(world.given.every((host) => kept.has(host)));
  search.resolve();
  await idle();
  assert.equal(new Set(world.given).size, world.given.length, 'no node gets it twice');
  world.given.splice(0);
  world.clock.jump(KNOWN_NODES_MS);
  const late = Promise.withResolvers<void>();
  world.heard = late.promise;
  const third = put(3);
  await idle();
  assert.deepEqual(world.given, []);
  late.resolve();
  assert.ok((await third).replicas >= REPLICAS);
});

test('a node that refuses an old token gets the record again with the token of the search', async () => {
  const world = new World();
  world.engine.closer = 30;
  const owner = world.identity();
  const first = endpointRecord(owner, { ...world.details, seq: 1 });
  await world.writing.put(first.key, first.record);
  await idle();
  const earlier = world.given.splice(0).length;
  const search = Promise.withResolvers<void>();
  world.heard = search.promise;
  let refusals = 0;
  world.verdict = async () => (refusals++ < earlier ? null : KEPT);
  const second = endpointRecord(owner, { ...world.details, seq: 2 });
  const putting = world.writing.put(second.key, second.record);
  await idle();
  const early = world.given.length;
  refusals = earlier;
  search.resolve();
  const { replicas } = await putting;
  assert.ok(replicas >= REPLICAS);
  await idle();
  const twice = world.given.slice(0, early).filter((host) => world.given.lastIndexOf(host) >= early);
  assert.ok(early > 0 && twice.length === early, `${twice.length} of ${early} got it again`);
});
