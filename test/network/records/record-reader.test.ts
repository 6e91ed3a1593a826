import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { addDigest, recordDigest } from '../../../src/foundation/records/digest.ts';
import { agentKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { ClosestNodes } from '../../../src/network/records/closest-nodes.ts';
import { encodePage, type FindReply } from '../../../src/network/records/messages.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { RecordReader } from '../../../src/network/records/record-reader.ts';
import { RecordSetFetcher } from '../../../src/network/records/record-set-fetcher.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { newIdentity } from '../../support/identities.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { serviceRecord, testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = serviceKey('lang.translate');
const TYPES = [RECORD.service];

/** A reader whose own store holds two records, and nodes that say what the test wants, when it wants (asked the n-th). */
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
  return { reader, own, known: new Set(digests.map(toHex)), pages: () => pages };
}

test('a list holds what our own store has, though nobody else has anything', async () => {
  const { reader, own, pages } = setUp({});
  const found = await reader.list(KEY, TYPES, {});
  assert.deepEqual(new Set(found.map(({ aid }) => aid)), new Set(own.map(({ aid }) => aid)));
  assert.equal(pages(), 0);
});

test('a node that says it has what the reader has, as many and the same, is asked for nothing', async () => {
  const says = { count: 2, digest: new Uint8Array(8) };
  const { reader, known, pages } = setUp(says);
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 1, 'as many, and others');
  for (const digest of known) addDigest(says.digest, Buffer.from(digest, 'hex'));
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 1);
  says.count = 3;
  await reader.list(KEY, TYPES, { known });
  assert.equal(pages(), 2, 'one more');
});

/** Where an agent is, and the key that it stands under. */
function whereabouts(): { readonly record: SignedRecord; readonly key: Uint8Array } {
  const owner = newIdentity();
  const timestamp = unixSeconds(new TestClock());
  return { record: testRecord(owner, RECORD.endpoints, { timestamp, ttl: 3600 }), key: agentKey(owner.aid) };
}

test('who reads is told of the first valid record, once, and of none that does not belong there', async () => {
  const { record, key } = whereabouts();
  const { reader } = setUp({ count: 1, records: [record.encoded] });
  const told: Uint8Array[] = [];
  const onFirst = ({ encoded }: SignedRecord): void => void told.push(encoded);
  const found = await reader.get(key, RECORD.endpoints, { onFirst });
  assert.deepEqual(found?.encoded, record.encoded);
  assert.deepEqual(told, [record.encoded]);
  assert.equal(await reader.get(whereabouts().key, RECORD.endpoints, { onFirst }), null);
  assert.equal(told.length, 1);
});

test('who reads is told of a record before all nodes have answered', async () => {
  const { record, key } = whereabouts();
  const answer = Promise.withResolvers<void>();
  const says = { count: 1, records: [record.encoded], nodes: [nodeAddress(2)] };
  let ended = false;
  const { reader } = setUp(says, (n) => (n === 1 ? Promise.resolve() : answer.promise));
  const told = Promise.withResolvers<SignedRecord>();
  const found = reader.get(key, RECORD.endpoints, { onFirst: told.resolve }).finally(() => (ended = true));
  assert.deepEqual((await told.promise).encoded, record.encoded);
  assert.equal(ended, false, 'the second node has not answered');
  answer.resolve();
  assert.deepEqual((await found)?.encoded, record.encoded);
});
