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

/** Verifies one record with nothing remembered. */
export function verifyRecord(record: SignedRecord, now: number): void {
  new RecordVerifier({}, { delegations: new DelegationVerifier() }).verify(record, now);
}

export interface RecordDetails {
  readonly seq?: number;
  /** Unix seconds; the system's clock where left out. */
  readonly timestamp?: number;
  readonly ttl?: number;
  readonly payload?: Uint8Array;
}

/** A record of any type, by default a fresh one that lives an hour. */
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

/** An endpoint record and where it belongs. */
export function endpointRecord(owner: TestIdentity = newIdentity(), details: RecordDetails = {}): Published {
  return { key: agentKey(owner.aid), record: testRecord(owner, RECORD.endpoints, details) };
}

/** A custom record that no datagram holds. */
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

/** A note for a recipient, of an identity that is made for it alone. */
export function noteRecord(recipient: TestIdentity, bodyBytes = 200, details: RecordDetails = {}): Published {
  const key = mailboxKey(recipient.aid);
  const payload = new Uint8Array(Buffer.concat([key, randomBytes(bodyBytes)]));
  return { key, record: testRecord(newIdentity(), RECORD.note, { payload, ...details }) };
}

/** A note that a token removes; its sealed part is noise. */
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
