import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { detach } from '../../../src/foundation/detached.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { addDigest, recordDigest } from '../../../src/foundation/records/digest.ts';
import { agentKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { ClosestNodes } from '../../../src/network/records/closest-nodes.ts';
import { encodePage, type FindReply } from '../../../src/network/records/messages.ts';
import { closestTo, nodeId } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { RecordReader } from '../../../src/network/records/record-reader.ts';
import { RecordSetFetcher } from '../../../src/network/records/record-set-fetcher.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { idle } from '../../support/idle.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord, serviceRecord, testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = serviceKey('lang.translate');
const TYPES = [RECORD.service];

/**
 * A reader with two records in its own store, among nodes that send this reply after `answers(n)` for the n-th request.
 */
function setUp(says: Partial<FindReply>, answers: (n: number) => Promise<void> = async () => {}) {
  const clock = new TestClock();
  const store = new RecordStore({ file: ':memory:', maxBytes: 1 << 24 }, { clock, log: silentLog });
  const own = [1, 2].map(() => serviceRecord('lang.translate', undefined, { timestamp: unixSeconds(clock) }).record);
  for (const record of own) assert.equal(store.offer(KEY, record, 'a').code, 'kept');
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  let pages = 0;
  let asked = 0;
  const request = async (): Promise<Uint8Array> => {
    pages++;
    return encodePage({ records: own.map(({ encoded }) => encoded), next: 0 });
  };
  const fetcher = new RecordSetFetcher(clock, verifier, { request, onRequest: () => {} }, new Uint8Array(8), {
    ask: async () => null,
  });
  const reader = new RecordReader(
    clock,
    verifier,
    store,
    {
      forRead: (target) =>
        new ClosestNodes(
          { target, width: 20, parallel: 8, enough: 8, start: [nodeAddress(1)] },
          {
            clock,
            health: new PeerHealth({ clock }),
            ask: async (to, id) => {
              await answers(++asked);
              return answerOf(to, id, says);
            },
            skips: () => false,
            isOwnHost: () => false,
          },
        ),
    },
    fetcher,
    { onRead: () => {} },
  );
  const digests = own.map(({ encoded }) => recordDigest(encoded));
  return { clock, reader, own, known: new Set(digests.map(toHex)), pages: () => pages };
}

test('a list contains the records of the local store even if no other node has any', async () => {
  const { reader, own, pages } = setUp({});
  const found = await reader.list(KEY, TYPES, {});
  assert.deepEqual(new Set(found.map(({ aid }) => aid)), new Set(own.map(({ aid }) => aid)));
  assert.equal(pages(), 0);
});

test('a node with the same count and digest as the reader receives no page request', async () => {
  const says = { count: 2, digest: new Uint8Array(8) };
  const { reader, known, pages } = setUp(says);
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 1, 'same count, other records');
  for (const digest of known) addDigest(says.digest, Buffer.from(digest, 'hex'));
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 1);
  says.count = 3;
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 2, 'one more record');
});

/** An endpoint record and its key. */
function endpointOfAgent(): { readonly record: SignedRecord; readonly key: Uint8Array } {
  const owner = newIdentity();
  const timestamp = unixSeconds(new TestClock());
  return { record: testRecord(owner, RECORD.endpoints, { timestamp, ttl: 3600 }), key: agentKey(owner.aid) };
}

test('a reader is notified of the first valid record once, and of no misplaced one', async () => {
  const { record, key } = endpointOfAgent();
  const { reader } = setUp({ count: 1, records: [record.encoded] });
  const reported: Uint8Array[] = [];
  const onFirst = ({ encoded }: SignedRecord): void => void reported.push(encoded);
  const found = await reader.get(key, RECORD.endpoints, { onFirst });
  assert.deepEqual(found?.encoded, record.encoded);
  assert.deepEqual(reported, [record.encoded]);
  assert.equal(await reader.get(endpointOfAgent().key, RECORD.endpoints, { onFirst }), null);
  assert.equal(reported.length, 1);
});

test('a reader learns whether the nodes near the key answered', async () => {
  const { key } = endpointOfAgent();
  const heard: boolean[] = [];
  const onHeard = (isEnough: boolean): void => void heard.push(isEnough);
  const { reader } = setUp({ count: 0, records: [] });
  await reader.get(key, RECORD.endpoints, { onHeard });
  await reader.list(key, [RECORD.endpoints], { onHeard });
  assert.deepEqual(heard.splice(0), [true, true]);
  const deaf = setUp({ count: 0, records: [] }, () => new Promise(() => {}));
  const reads = [
    deaf.reader.get(key, RECORD.endpoints, { onHeard }),
    deaf.reader.list(key, [RECORD.endpoints], { onHeard }),
  ];
  await deaf.clock.run(5_000);
  assert.deepEqual(
    [await Promise.all(reads), heard],
    [
      [null, []],
      [false, false],
    ],
  );
});

test('a reader is notified of a record before all nodes have answered', async () => {
  const { record, key } = endpointOfAgent();
  const answer = Promise.withResolvers<void>();
  const says = { count: 1, records: [record.encoded], nodes: [nodeAddress(2)] };
  let ended = false;
  const { reader } = setUp(says, (n) => (n === 1 ? Promise.resolve() : answer.promise));
  const reported = Promise.withResolvers<SignedRecord>();
  const found = reader.get(key, RECORD.endpoints, { onFirst: reported.resolve }).finally(() => (ended = true));
  assert.deepEqual((await reported.promise).encoded, record.encoded);
  assert.equal(ended, false, 'the second node has not answered');
  answer.resolve();
  assert.deepEqual((await found)?.encoded, record.encoded);
});

/** A read from 24 nodes in different blocks, closest first. The first nodes store the older or the newer record. */
function agreement(t: TestContext, thorough: boolean) {
  const clock = new TestClock();
  const timestamp = unixSeconds(clock);
  const owner = delegateAnew(KeyPair.fromSeed(new Uint8Array(32).fill(2)), timestamp);
  const older = endpointRecord(owner, { timestamp, seq: 1 });
  const newer = endpointRecord(owner, { timestamp, seq: 2 });
  const { key } = newer;
  const nodes = closestTo(
    key,
    Array.from({ length: 24 }, (_, n) => ({ ...nodeAddress(n + 1), id: nodeId(nodeAddress(n + 1)) })),
    24,
  );
  const answers = nodes.map(() => Promise.withResolvers<Partial<FindReply>>());
  const store = new RecordStore({ file: ':memory:', maxBytes: 1 << 24 }, { clock, log: silentLog });
  t.after(() => store.close());
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  const nodeRequests = { request: async () => new Uint8Array(), onRequest: () => {} };
  const fetcher = new RecordSetFetcher(clock, verifier, nodeRequests, new Uint8Array(8), { ask: async () => null });
  const forRead = (target: Uint8Array) =>
    new ClosestNodes(
      { target, width: 24, parallel: 24, enough: 24, start: nodes },
      {
        clock,
        health: new PeerHealth({ clock }),
        ask: async (to, id) =>
          answerOf(to, id, await answers[nodes.findIndex(({ host }) => host === to.host)]?.promise),
        skips: () => false,
        isOwnHost: () => false,
      },
    );
  const reader = new RecordReader(clock, verifier, store, { forRead }, fetcher, { onRead: () => {} });
  let seq: number | null = null;
  detach(reader.get(key, RECORD.endpoints, { thorough }).then((found) => void (seq = found?.seq ?? 0)));
  /**
   * Lets the next nodes answer, some of them with the newer record. Returns the result of the read, or null while it
   * runs.
   */
  let next = 0;
  const answer = async (count: number, withNewer: number): Promise<number | null> => {
    for (let i = 0; i < count; i++) {
      const { encoded } = i < withNewer ? newer.record : older.record;
      answers[next++]?.resolve({ count: 1, records: [encoded] });
    }
    await idle();
    return seq;
  };
  return answer;
}

test('a read ends when three blocks have the newest version and the twelve closest nodes have answered', async (t) => {
  const fewClosest = agreement(t, false);
  assert.equal(await fewClosest(11, 3), null, 'the twelfth node has not answered');
  assert.equal(await fewClosest(1, 0), 2);
  const fewVoters = agreement(t, false);
  assert.equal(await fewVoters(13, 2), null, 'two have the newest version');
  assert.equal(await fewVoters(1, 1), 2);
});

test('a thorough read waits for all of the closest nodes', async (t) => {
  const answer = agreement(t, true);
  assert.equal(await answer(23, 23), null);
  assert.equal(await answer(1, 0), 2);
});
