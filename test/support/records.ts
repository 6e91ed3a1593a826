/** Signed records for tests. */
import { randomBytes } from 'node:crypto';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { agentKey, mailboxKey, serviceKey } from '../../src/foundation/records/keys.ts';
import { encodeNotePayload, removalHash } from '../../src/foundation/records/notes.ts';
import { encodeServicePayload } from '../../src/foundation/records/payloads.ts';
import { type SignedRecord, signRecord } from '../../src/foundation/records/record.ts';
import { RECORD, type RecordType } from '../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../src/foundation/records/verifier.ts';
import { newIdentity, type TestIdentity } from './identities.ts';

/** Verifies one record without a cache. */
export function verifyRecord(record: SignedRecord, now: number): void {
  new RecordVerifier({}, { delegations: new DelegationVerifier() }).verify(record, now);
}

export interface RecordDetails {
  readonly seq?: number;
  /** Unix seconds. Default: the system clock. */
  readonly timestamp?: number;
  readonly ttl?: number;
  readonly payload?: Uint8Array;
}

/** A record of any type. Default: a fresh one that expires in an hour. */
export function testRecord(owner: TestIdentity, type: RecordType, details: RecordDetails = {}): SignedRecord {
  const { seq = 1, timestamp = Math.floor(Date.now() / 1000), ttl = 3600, payload = new Uint8Array(100) } = details;
  return signRecord(
    { aid: owner.aid, type, seq, timestamp, ttl, payload, delegation: owner.delegation },
    owner.operational,
  );
}

export interface Published {
  readonly key: Uint8Array;
  readonly record: SignedRecord;
}

/** An endpoint record and its key. */
export function endpointRecord(owner: TestIdentity = newIdentity(), details: RecordDetails = {}): Published {
  return { key: agentKey(owner.aid), record: testRecord(owner, RECORD.endpoints, details) };
}

/** A custom record that exceeds a datagram. */
export function largeRecord(owner: TestIdentity = newIdentity(), details: RecordDetails = {}): Published {
  const payload = new Uint8Array(randomBytes(4000));
  return { key: agentKey(owner.aid), record: testRecord(owner, RECORD.profile, { payload, ...details }) };
}

/** A service record. */
export function serviceRecord(
  service: string,
  owner: TestIdentity = newIdentity(),
  details: RecordDetails = {},
): Published {
  const payload = encodeServicePayload({
    service,
    name: 'Test agent',
    protocols: ['http'],
    tags: ['test'],
    brief: 'Does what tests need.',
    meta: '',
  });
  return { key: serviceKey(service), record: testRecord(owner, RECORD.service, { payload, ...details }) };
}

/** A note for a recipient, from a new identity. */
export function noteRecord(recipient: TestIdentity, bodyBytes = 200, details: RecordDetails = {}): Published {
  const key = mailboxKey(recipient.aid);
  const payload = new Uint8Array(Buffer.concat([key, randomBytes(bodyBytes)]));
  return { key, record: testRecord(newIdentity(), RECORD.note, { payload, ...details }) };
}

/** A note that a token removes. Its sealed part is random. */
export function removableNote(recipient: TestIdentity, token: Uint8Array, details: RecordDetails = {}): Published {
  const key = mailboxKey(recipient.aid);
  const payload = encodeNotePayload({
    mailbox: key,
    removalHash: removalHash(token),
    keyId: new Uint8Array(8),
    encapsulated: new Uint8Array(32),
    ciphertext: new Uint8Array(randomBytes(200)),
  });
  return { key, record: testRecord(newIdentity(), RECORD.note, { payload: Uint8Array.from(payload), ...details }) };
}
