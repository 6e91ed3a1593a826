import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD, type RecordType } from '../../../src/foundation/records/types.ts';
import type { NodeAnswer } from '../../../src/network/records/closest-nodes.ts';
import type { Summary } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { Quorum } from '../../../src/network/records/quorum.ts';
import { newIdentity } from '../../support/identities.ts';
import { answerOf, nodeAddress } from '../../support/named-nodes.ts';
import { endpointRecord, serviceRecord } from '../../support/records.ts';

const ENDPOINTS = String(RECORD.endpoints);

function holder(n: number): NodeAnswer {
  return answerOf(nodeAddress(n), nodeId(nodeAddress(n)));
}

function quorumOf(types: readonly RecordType[], isValid: (record: SignedRecord) => boolean = () => true) {
  let judged = 0;
  const quorum = new Quorum(types, (record) => {
    judged++;
    return isValid(record);
  });
  return { quorum, judged: () => judged };
}

function summaryOf({ type, seq, timestamp, delegation, encoded }: SignedRecord): Summary {
  return { type, seq, timestamp, issuedAt: delegation.issuedAt, digest: recordDigest(encoded) };
}

test('each host with the newest version counts once towards the agreement', () => {
  const { quorum } = quorumOf([RECORD.endpoints]);
  const owner = newIdentity();
  const [older, newer] = [endpointRecord(owner, { seq: 1 }).record, endpointRecord(owner, { seq: 2 }).record];
  assert.equal(quorum.agreement(ENDPOINTS), 0);
  for (const n of [1, 2, 3]) quorum.add([older.encoded], [], holder(n));
  assert.equal(quorum.agreement(ENDPOINTS), 3);
  quorum.add([newer.encoded], [], holder(4));
  quorum.add([], [summaryOf(newer)], holder(4));
  assert.equal(quorum.agreement(ENDPOINTS), 1, 'one host');
  quorum.add([newer.encoded], [], null);
  assert.equal(quorum.agreement(ENDPOINTS), 2, 'the local store has a vote');
  const [first, second] = quorum.versions(ENDPOINTS);
  assert.deepEqual([first?.seq, second?.seq], [2, 1]);
  assert.equal(first?.holders.length, 2, 'the local store is not a source to fetch from');
  assert.deepEqual(
    quorum.records().map(({ seq }) => seq),
    [2],
  );
});

test('records that were not requested, do not verify or do not parse are ignored', () => {
  const { record } = endpointRecord();
  const others = quorumOf([RECORD.profile]);
  others.quorum.add([record.encoded], [summaryOf(record)], holder(1));
  assert.deepEqual(others.quorum.slots, []);
  assert.equal(others.judged(), 0);
  for (const isValid of [
    () => false,
    () => {
      throw new Error('forged');
    },
  ]) {
    const { quorum } = quorumOf([], isValid);
    quorum.add([record.encoded, new Uint8Array(50)], [], holder(1));
    assert.deepEqual(quorum.slots, []);
    assert.equal(quorum.knows(record.encoded), true);
  }
  const all = quorumOf([]);
  all.quorum.add([record.encoded], [], holder(1));
  assert.deepEqual(all.quorum.slots, [ENDPOINTS], 'an empty list of types requests all');
});

test('a record is verified once, even if many nodes return it', () => {
  const { quorum, judged } = quorumOf([]);
  const { record } = endpointRecord();
  assert.equal(quorum.knows(record.encoded), false);
  for (const n of [1, 2, 3]) quorum.add([record.encoded], [], holder(n));
  assert.equal(judged(), 1);
  assert.equal(quorum.knows(record.encoded), true);
});

test('a node can promise one version of each type, and none for records of many publishers', () => {
  const { quorum } = quorumOf([]);
  const owner = newIdentity();
  const promises = [1, 2, 3].map((seq) => summaryOf(endpointRecord(owner, { seq }).record));
  quorum.add([], [...promises, summaryOf(serviceRecord('lang.translate', owner).record)], holder(1));
  assert.deepEqual(quorum.slots, [ENDPOINTS]);
  assert.deepEqual(
    quorum.versions(ENDPOINTS).map(({ seq }) => seq),
    [1],
  );
  assert.deepEqual(quorum.records(), [], 'a promise is no record');
});

test('a fetched record fulfills its promise, and a fetched record without a promise counts too', () => {
  const { quorum } = quorumOf([]);
  const owner = newIdentity();
  const [promised, other] = [endpointRecord(owner, { seq: 2 }).record, endpointRecord(owner, { seq: 1 }).record];
  quorum.add([], [summaryOf(promised)], holder(1));
  quorum.fulfil(other.encoded);
  assert.equal(quorum.records()[0]?.seq, 1);
  quorum.fulfil(promised.encoded);
  assert.equal(quorum.records()[0]?.seq, 2);
  assert.equal(quorum.agreement(ENDPOINTS), 1, 'a fetch is not a vote');
  quorum.fulfil(new Uint8Array(9));
  assert.equal(quorum.slots.length, 1);
});

test('records of different publishers are kept apart', () => {
  const { quorum } = quorumOf([RECORD.service]);
  const records = [1, 2].map(() => serviceRecord('lang.translate').record);
  quorum.add(
    records.map(({ encoded }) => encoded),
    [],
    holder(1),
  );
  assert.equal(quorum.slots.length, 2);
  assert.equal(quorum.records().length, 2);
});

test('a fetched record counts as its real version, not as the newer version that was claimed', () => {
  const { quorum } = quorumOf([RECORD.endpoints]);
  const owner = newIdentity();
  const [older, newer] = [endpointRecord(owner, { seq: 1 }).record, endpointRecord(owner, { seq: 2 }).record];
  quorum.add([], [summaryOf(newer)], holder(1));
  quorum.add([], [summaryOf(older)], holder(2));
  quorum.fulfil(older.encoded);
  assert.deepEqual(
    quorum.versions(ENDPOINTS).map(({ record }) => record?.seq ?? null),
    [null, 1],
  );
});
