/**
 * The signed record, the only container for published data. Pure functions without I/O; time is an argument. Format:
 * docs/protocol.md, "Signed records".
 */
import { concatBytes } from '@noble/hashes/utils.js';
import { compareBytes, equalBytes } from '../bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../cbor.ts';
import { CLOCK_SKEW_S, MAX_UNIX_S } from '../domain/time.ts';
import { SvcError } from '../errors.ts';
import { type Aid, aidToBytes } from '../identity/aid.ts';
import { type Delegation, decodeDelegation, encodeDelegation } from '../identity/delegation.ts';
import { SIGNATURE_BYTES, type Signer } from '../identity/ed25519.ts';
import { checkWindow, isWindowOpen } from '../identity/grant.ts';
import {
  isRecordType,
  MAX_RECORD_BYTES,
  maxPayloadBytes,
  maxRecordBytes,
  maxTtlSeconds,
  type RecordType,
} from './types.ts';

export { MAX_RECORD_BYTES };

const VERSION = 1;
const DOMAIN = new TextEncoder().encode('svcd/record/v1\0');
/** Records whose members and bytes were derived from each other here, so that they need no comparison. */
const consistent = new WeakSet<SignedRecord>();
/** Records signed here with the key of their delegation, so that their signatures need no verification. */
const signedLocally = new WeakSet<SignedRecord>();
/** Maximum bytes that the length of a payload can add to its header. */
const PAYLOAD_HEADER_GROWTH_BYTES = 2;

export interface SignedRecord {
  readonly aid: Aid;
  readonly type: RecordType;
  /** Increases with every record of this AID and type. */
  readonly seq: number;
  /** Signing time in Unix seconds. */
  readonly timestamp: number;
  /** Lifetime in seconds from `timestamp`. */
  readonly ttl: number;
  readonly payload: Uint8Array;
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
  /** The canonical encoding, with the signature. */
  readonly encoded: Uint8Array;
}

/** A signer of records, with its public key if known. */
type RecordSigner = Pick<Signer, 'sign'> & Partial<Pick<Signer, 'publicKey'>>;

export type RecordContent = Pick<SignedRecord, 'aid' | 'type' | 'seq' | 'timestamp' | 'ttl' | 'payload' | 'delegation'>;

function bad(reason: string): SvcError {
  return new SvcError('bad_record', { message: `Invalid signed record: ${reason}.`, details: { reason } });
}

/** The wire format without the signature. Keys have one letter to save space in datagrams. */
function bodyOf(content: RecordContent): { readonly [key: string]: Uint8Array | number } {
  return {
    v: VERSION,
    a: aidToBytes(content.aid),
    y: content.type,
    s: content.seq,
    t: content.timestamp,
    l: content.ttl,
    p: content.payload,
    d: encodeDelegation(content.delegation),
  };
}

/** The bytes that the operational key signs. */
export function recordSigningInput(content: RecordContent): Uint8Array {
  return concatBytes(DOMAIN, encodeCbor(bodyOf(content)));
}

/**
 * Signs a record with the operational key of its delegation. If the signer's public key is known to be that key, the
 * record needs no verification here: see `isSignedLocally`.
 * @throws SvcError `too_large` if the payload or the record exceeds the limit of its type
 */
export function signRecord(content: RecordContent, operational: RecordSigner): SignedRecord {
  const { aid, type, seq, timestamp, ttl, payload, delegation } = content;
  const maxPayload = maxPayloadBytes(type);
  if (payload.length > maxPayload)
    throw new SvcError('too_large', {
      message: `The payload has ${payload.length} bytes; the limit of this record type is ${maxPayload}.`,
      details: { limit: maxPayload, size: payload.length },
    });
  const signature = operational.sign(recordSigningInput(content));
  const encoded = encodeCbor({ ...bodyOf(content), g: signature });
  const maxRecord = maxRecordBytes(type);
  if (encoded.length > maxRecord)
    throw new SvcError('too_large', {
      message: `The signed record has ${encoded.length} bytes; the limit of this record type is ${maxRecord}. Shorten its texts and lists.`,
      details: { limit: maxRecord, size: encoded.length },
    });
  const record = markConsistent({ aid, type, seq, timestamp, ttl, payload, delegation, signature, encoded });
  const { publicKey } = operational;
  if (publicKey !== undefined && equalBytes(publicKey, delegation.operationalKey)) signedLocally.add(record);
  return record;
}

/** True if this process signed the record with the key of its delegation. */
export function isSignedLocally(record: SignedRecord): boolean {
  return signedLocally.has(record);
}

function markConsistent(record: SignedRecord): SignedRecord {
  consistent.add(Object.freeze(record));
  return record;
}

/** Maximum payload bytes of a record of a given type and delegation. */
export function payloadBudget(type: RecordType, delegation: Delegation): number {
  const widest: RecordContent = {
    aid: delegation.agent,
    type,
    seq: Number.MAX_SAFE_INTEGER,
    timestamp: MAX_UNIX_S,
    ttl: maxTtlSeconds(type),
    payload: new Uint8Array(),
    delegation,
  };
  const empty = encodeCbor({ ...bodyOf(widest), g: new Uint8Array(SIGNATURE_BYTES) });
  return Math.min(maxPayloadBytes(type), maxRecordBytes(type) - empty.length - PAYLOAD_HEADER_GROWTH_BYTES);
}

/**
 * Decodes a record. The result is well-formed but not verified.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export function decodeRecord(encoded: Uint8Array): SignedRecord {
  // protocol.md, steps 1 and 2
  let decoded: unknown;
  try {
    decoded = decodeCbor(encoded, MAX_RECORD_BYTES);
  } catch (error) {
    throw new SvcError('bad_record', { message: 'The signed record is malformed.', cause: error });
  }
  const map = asMap(decoded, ['v', 'a', 'y', 's', 't', 'l', 'p', 'd', 'g']);
  if (map === null || map['v'] !== VERSION) throw bad('unknown format');
  const { a: agent, y: type, s: seq, t: timestamp, l: ttl, p: payload, d: proof, g: signature } = map;
  if (!isUint(type) || !isRecordType(type)) throw bad('unknown type');
  if (!isUint(seq) || !isUint(timestamp, MAX_UNIX_S) || !isUint(ttl)) throw bad('malformed field');
  if (!isBytes(agent) || !isBytes(payload) || !isBytes(proof) || !isBytes(signature, SIGNATURE_BYTES))
    throw bad('malformed field');
  const delegation = decodeDelegation(proof);
  if (!equalBytes(aidToBytes(delegation.agent), agent)) throw bad('the delegation belongs to another agent');
  return markConsistent({
    aid: delegation.agent,
    type,
    seq,
    timestamp,
    ttl,
    payload,
    delegation,
    signature,
    encoded: Uint8Array.from(encoded),
  });
}

/** As `decodeRecord`, of bytes that another node sent in a message. Null if they are malformed. */
export function toRecord(sent: Uint8Array): SignedRecord | null {
  try {
    return decodeRecord(Uint8Array.from(sent));
  } catch {
    return null;
  }
}

/**
 * Checks everything about a record except its signatures: sizes, lifetime, time window, and that its members match its
 * encoding.
 * @param now Unix seconds
 * @throws SvcError `bad_record` or `bad_delegation` with the reason
 */
export function checkRecord(record: SignedRecord, now: number): void {
  // protocol.md, steps 3 to 5
  const { type, payload, encoded, ttl, timestamp, delegation } = record;
  if (payload.length > maxPayloadBytes(type) || encoded.length > maxRecordBytes(type))
    throw bad('it is too large for its type');
  if (ttl === 0 || ttl > maxTtlSeconds(type)) throw bad('its lifetime is out of range');
  if (timestamp > now + CLOCK_SKEW_S) throw bad('its time is in the future');
  if (timestamp + ttl < now) throw bad('it has expired');
  if (delegation.agent !== record.aid) throw bad('the delegation belongs to another agent');
  checkWindow(delegation, now);
  if (!consistent.has(record) && !equalBytes(encodeCbor({ ...bodyOf(record), g: record.signature }), encoded))
    throw bad('its members do not match its bytes');
}

/** True if `now` is within the record's lifetime and the time window of its delegation. */
export function isValidAt({ timestamp, ttl, delegation }: SignedRecord, now: number): boolean {
  const hasBegun = timestamp <= now + CLOCK_SKEW_S && timestamp + ttl >= now;
  return hasBegun && isWindowOpen(delegation, now);
}

/** The error for a record that was not signed by the key of its delegation. */
export function badRecordSignature(): SvcError {
  return bad('the operational key did not sign it');
}

/**
 * Orders two records of one AID and type: the newer delegation wins, then the higher seq, then the later timestamp.
 * Their bytes break ties, so that all nodes agree.
 * @returns above 0 if `a` is newer, below 0 if `b` is, 0 if they are equal
 */
export function compareFreshness(a: SignedRecord, b: SignedRecord): number {
  // protocol.md, "Which record wins"
  return (
    a.delegation.issuedAt - b.delegation.issuedAt ||
    a.seq - b.seq ||
    a.timestamp - b.timestamp ||
    compareBytes(a.encoded, b.encoded)
  );
}

/** When a record can no longer be used, in Unix seconds: at its expiry or at the end of its delegation. */
export function validUntil(record: Pick<SignedRecord, 'timestamp' | 'ttl' | 'delegation'>): number {
  const end = record.delegation.expiresAt;
  return end === 0 ? expiresAt(record) : Math.min(expiresAt(record), end);
}

/** Expiry time of a record in Unix seconds. */
export function expiresAt(record: Pick<SignedRecord, 'timestamp' | 'ttl'>): number {
  return record.timestamp + record.ttl;
}
