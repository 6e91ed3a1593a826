import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation, encodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { parseSeed } from '../../../src/foundation/identity/keys.ts';
import { agentKey, belongsUnderKey, mailboxKey, serviceKey } from '../../../src/foundation/records/keys.ts';
import {
  compareFreshness,
  decodeRecord,
  expiresAt,
  MAX_RECORD_BYTES,
  payloadBudget,
  recordSigningInput,
  signRecord,
} from '../../../src/foundation/records/record.ts';
import { MAX_CUSTOM_PAYLOAD_BYTES, MAX_DATAGRAM_RECORD_BYTES, RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { ETHEREUM, NATIVE, PARALISM } from '../../../tools/vectors/delegation.ts';
import { recordVectors } from '../../../tools/vectors/record.ts';
import { newIdentity } from '../../support/identities.ts';
import { testRecord, verifyRecord } from '../../support/records.ts';
import { failsWith, hex, readVectors } from '../../support/vectors.ts';

interface RecordVectors {
  readonly now: number;
  readonly operational_seed_hex: string;
  readonly valid: readonly {
    name: string;
    aid: string;
    type: number;
    seq: number;
    timestamp: number;
    ttl: number;
    payload_hex: string;
    delegation_hex: string;
    signing_input_hex: string;
    signature_hex: string;
    record_hex: string;
    stored_under_hex: string;
  }[];
  readonly invalid: readonly { why: string; now: number; record_hex: string }[];
  readonly misplaced: readonly { record_hex: string; key_hex: string }[];
  readonly oldest_to_newest: readonly string[];
  readonly keys: {
    readonly agents: readonly { aid: string; agent_key_hex: string; mailbox_key_hex: string }[];
    readonly services: readonly { service: string; service_key_hex: string }[];
  };
}
const vectors = readVectors('record') as RecordVectors;
const NOW = vectors.now;
const REFUSED = failsWith('bad_record', 'bad_delegation');

function newVerifier(): RecordVerifier {
  return new RecordVerifier({}, { delegations: new DelegationVerifier() });
}

test('the vectors match the output of tools/make-vectors.ts', () => {
  assert.deepEqual(vectors, recordVectors());
});

test('the records of the vectors are read, verified and placed', () => {
  for (const v of vectors.valid) {
    const record = decodeRecord(hex(v.record_hex));
    verifyRecord(record, NOW);
    assert.equal(record.aid, parseAid(v.aid));
    assert.deepEqual(
      [record.type, record.seq, record.timestamp, record.ttl, toHex(record.payload), toHex(record.signature)],
      [v.type, v.seq, v.timestamp, v.ttl, v.payload_hex, v.signature_hex],
    );
    assert.equal(toHex(recordSigningInput(record)), v.signing_input_hex);
    assert.equal(toHex(encodeDelegation(record.delegation)), v.delegation_hex);
    assert.ok(belongsUnderKey(record, hex(v.stored_under_hex)), v.name);
    assert.equal(expiresAt(record), v.timestamp + v.ttl);
  }
});

test('the records of the vectors are made byte for byte', () => {
  const operational = parseSeed(vectors.operational_seed_hex);
  for (const v of vectors.valid.filter(({ name }) => name !== 'note')) {
    const delegation = decodeDelegation(hex(v.delegation_hex));
    const { type, seq, timestamp, ttl } = v;
    const content = { aid: parseAid(v.aid), type, seq, timestamp, ttl, payload: hex(v.payload_hex), delegation };
    assert.equal(toHex(signRecord(content, operational).encoded), v.record_hex, v.name);
  }
});

test('bad records are refused, by every way of verifying', async () => {
  const verifier = newVerifier();
  for (const { why, now, record_hex } of vectors.invalid) {
    assert.throws(() => verifyRecord(decodeRecord(hex(record_hex)), now), REFUSED, why);
    assert.throws(() => verifier.verify(decodeRecord(hex(record_hex)), now), REFUSED, why);
    await assert.rejects(async () => verifier.verifyAsync(decodeRecord(hex(record_hex)), now), REFUSED, why);
  }
});

test('a record belongs under its own key only', () => {
  for (const { record_hex, key_hex } of vectors.misplaced)
    assert.ok(!belongsUnderKey(decodeRecord(hex(record_hex)), hex(key_hex)));
  const owner = newIdentity(NOW);
  const short = testRecord(owner, RECORD.note, { payload: mailboxKey(owner.aid).subarray(0, 31) });
  assert.ok(!belongsUnderKey(short, mailboxKey(owner.aid)));
  assert.ok(!belongsUnderKey(short, short.payload));
  assert.ok(
    !belongsUnderKey(testRecord(owner, RECORD.note, { payload: mailboxKey(owner.aid) }), mailboxKey(owner.aid)),
  );
  assert.ok(!belongsUnderKey(testRecord(owner, RECORD.service), serviceKey('lang.translate')));
});

test('keys of the DHT are as in the vectors', () => {
  for (const { aid, agent_key_hex, mailbox_key_hex } of vectors.keys.agents) {
    assert.equal(toHex(agentKey(parseAid(aid))), agent_key_hex);
    assert.equal(toHex(mailboxKey(parseAid(aid))), mailbox_key_hex);
  }
  for (const { service, service_key_hex } of vectors.keys.services)
    assert.equal(toHex(serviceKey(service)), service_key_hex);
});

test('of two records the one with the later delegation, then seq, then time is the newer', () => {
  const records = vectors.oldest_to_newest.map((text) => decodeRecord(hex(text)));
  for (const [i, a] of records.entries()) {
    for (const [j, b] of records.entries()) {
      assert.equal(Math.sign(compareFreshness(a, b)), Math.sign(i - j));
    }
  }
});

test('two records that differ only in their payload are in an order that all nodes agree on', () => {
  const owner = newIdentity(NOW);
  const [a, b] = [1, 2].map((byte) => testRecord(owner, 3, { timestamp: NOW, payload: Uint8Array.of(byte) }));
  assert.ok(a !== undefined && b !== undefined);
  assert.equal(compareFreshness(a, b), -compareFreshness(b, a));
  assert.notEqual(compareFreshness(a, b), 0);
});

test('manually assembled members are not the signed ones', () => {
  const owner = newIdentity(NOW);
  const record = testRecord(owner, RECORD.endpoints, { timestamp: NOW });
  const other = testRecord(owner, RECORD.endpoints, { timestamp: NOW, seq: 2 });
  const verifier = newVerifier();
  verifier.verify(record, NOW);
  verifier.verify(other, NOW);
  const forgeries = [
    { ...record, seq: 9 },
    { ...record, payload: new Uint8Array(3) },
    { ...record, encoded: other.encoded },
    { ...record, aid: newIdentity(NOW).aid },
    { ...record, signature: other.signature },
    { ...record, ttl: 7200 },
  ];
  for (const forgery of forgeries) {
    assert.throws(() => verifyRecord(forgery, NOW), REFUSED);
    assert.throws(() => verifier.verify(forgery, NOW), REFUSED);
  }
});

test('a record does not share the memory that it was read from', () => {
  const bytes = Buffer.from(vectors.valid[0]?.record_hex ?? '', 'hex');
  const record = decodeRecord(bytes);
  bytes.fill(0);
  verifyRecord(record, NOW);
});

test('signs a payload of the maximum size, but not one byte more', () => {
  const owner = newIdentity(NOW);
  const sign = (type: number, length: number) =>
    testRecord(owner, type, { timestamp: NOW, payload: new Uint8Array(length) });
  for (const type of [RECORD.endpoints, RECORD.service, RECORD.encryptionKeys]) {
    const budget = payloadBudget(type, owner.delegation);
    assert.ok(sign(type, budget).encoded.length <= MAX_DATAGRAM_RECORD_BYTES);
    assert.throws(() => sign(type, budget + 40), failsWith('too_large'));
  }
  assert.equal(payloadBudget(RECORD.profile, owner.delegation), MAX_CUSTOM_PAYLOAD_BYTES);
  verifyRecord(sign(RECORD.profile, MAX_CUSTOM_PAYLOAD_BYTES), NOW);
  assert.throws(() => sign(RECORD.profile, MAX_CUSTOM_PAYLOAD_BYTES + 1), failsWith('too_large'));
  const note = payloadBudget(RECORD.note, owner.delegation);
  assert.ok(note >= 32 * 1024 + 1024);
  assert.ok(sign(RECORD.note, note).encoded.length <= MAX_RECORD_BYTES);
  // A wallet's proof is longer, and still leaves room for a service with a full brief.
  for (const proof of [ETHEREUM, PARALISM]) assert.ok(payloadBudget(RECORD.service, proof) >= 450);
  assert.ok(payloadBudget(RECORD.service, NATIVE) >= 650);
});

test('rejects random and damaged records with a catalogued error', () => {
  const records = vectors.valid.map((v) => hex(v.record_hex));
  const change = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), { minLength: 1, maxLength: 3 });
  const damaged = fc
    .tuple(fc.constantFrom(...records), change)
    .map(([record, changes]) => {
      const bytes = Uint8Array.from(record);
      for (const [at, by] of changes) bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ by;
      return bytes;
    })
    .filter((bytes) => !records.some((record) => Buffer.compare(record, bytes) === 0));
  const cut = fc.tuple(fc.constantFrom(...records), fc.nat()).map(([r, at]) => r.subarray(0, at % r.length));
  fc.assert(
    fc.property(fc.oneof({ weight: 5, arbitrary: damaged }, cut, fc.uint8Array({ maxLength: 400 })), (bytes) => {
      assert.throws(
        () => verifyRecord(decodeRecord(bytes), NOW),
        (error) => error instanceof SvcError && ['bad_record', 'bad_delegation'].includes(error.code),
      );
    }),
    { seed: 51, numRuns: 3000 },
  );
});
