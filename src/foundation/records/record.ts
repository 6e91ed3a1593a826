/**
 * The signed record: the one container for everything that is published. Pure: bytes in, bytes
 * out, time is an argument. Format: docs/protocol.md, "Signed records".
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
/** Records of which we made members and bytes from each other ourselves: nobody has to look whether they agree. */
const consistent = new WeakSet<SignedRecord>();
/** Records that were signed here with the key that their delegation names: nobody has to look at their signatures. */
const signedLocally = new WeakSet<SignedRecord>();
/** How much the length of a payload may add to its header, bytes. */
const PAYLOAD_HEADER_GROWTH_BYTES = 2;

export interface SignedRecord {
  readonly aid: Aid;
  readonly type: RecordType;
  /** Grows with every record of this AID and type. */
  readonly seq: number;
  /** When it was signed, Unix seconds. */
  readonly timestamp: number;
  /** Seconds that it lives from `timestamp`. */
  readonly ttl: number;
  readonly payload: Uint8Array;
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
  /** The record's only encoding, signature included. */
  readonly encoded: Uint8Array;
}

/** Who signs records, and with which key where that is known. */
type RecordSigner = Pick<Signer, 'sign'> & Partial<Pick<Signer, 'publicKey'>>;

export type RecordContent = Pick<SignedRecord, 'aid' | 'type' | 'seq' | 'timestamp' | 'ttl' | 'payload' | 'delegation'>;

function bad(reason: string): SvcError {
  return new SvcError('bad_record', { message: `The signed record does not verify: ${reason}.`, details: { reason } });
}

/** The wire form without its signature: one letter a key, for datagrams are small. */
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

/** What the operational key signs. */
export function recordSigningInput(content: RecordContent): Uint8Array {
  return concatBytes(DOMAIN, encodeCbor(bodyOf(content)));
}

/**
 * Signs a record with the operational key of its delegation. Where the signer says which key it has and that is this one,
 * the record need not be verified here again: `isSignedLocally`.
 * @throws SvcError `too_large` where the payload or the whole is over its type's limit
 */
export function signRecord(content: RecordContent, operational: RecordSigner): SignedRecord {
  const { aid, type, seq, timestamp, ttl, payload, delegation } = content;
  const maxPayload = maxPayloadBytes(type);
  if (payload.length > maxPayload)
    throw new SvcError('too_large', {
      message: `The payload has ${payload.length} bytes; a record of this type takes ${maxPayload}.`,
      details: { limit: maxPayload, size: payload.length },
    });
  const signature = operational.sign(recordSigningInput(content));
  const encoded = encodeCbor({ ...bodyOf(content), g: signature });
  const maxRecord = maxRecordBytes(type);
  if (encoded.length > maxRecord)
    throw new SvcError('too_large', {
      message: `The signed record has ${encoded.length} bytes; one of this type takes ${maxRecord}. Shorten its texts and lists.`,
      details: { limit: maxRecord, size: encoded.length },
    });
  const record = markConsistent({ aid, type, seq, timestamp, ttl, payload, delegation, signature, encoded });
  const { publicKey } = operational;
  if (publicKey !== undefined && equalBytes(publicKey, delegation.operationalKey)) signedLocally.add(record);
  return record;
}

/** True where this process made the record's signature with the key that its delegation names. */
export function isSignedLocally(record: SignedRecord): boolean {
  return signedLocally.has(record);
}

function markConsistent(record: SignedRecord): SignedRecord {
  consistent.add(Object.freeze(record));
  return record;
}

/** How many bytes of payload fit a record of a type that is signed under a delegation. */
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
 * Reads a record. It is well-formed then, not yet verified.
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
  if (!equalBytes(aidToBytes(delegation.agent), agent)) throw bad("the delegation is another agent's");
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

/**
 * Checks everything about a record but its signatures, at a time: sizes, life, window, and that its
 * members are what its encoding says.
 * @param now Unix seconds
 * @throws SvcError `bad_record` or `bad_delegation` with the reason
 */
export function checkRecord(record: SignedRecord, now: number): void {
  // protocol.md, steps 3 to 5
  const { type, payload, encoded, ttl, timestamp, delegation } = record;
  if (payload.length > maxPayloadBytes(type) || encoded.length > maxRecordBytes(type))
    throw bad('it is too large for its type');
  if (ttl === 0 || ttl > maxTtlSeconds(type)) throw bad('its life is out of range');
  if (timestamp > now + CLOCK_SKEW_S) throw bad('it is from the future');
  if (timestamp + ttl < now) throw bad('it has expired');
  if (delegation.agent !== record.aid) throw bad("the delegation is another agent's");
  checkWindow(delegation, now);
  if (!consistent.has(record) && !equalBytes(encodeCbor({ ...bodyOf(record), g: record.signature }), encoded))
    throw bad('its members are not what its bytes say');
}

/** Whether a time is within a record's life and within the window of its delegation. */
export function isValidAt({ timestamp, ttl, delegation }: SignedRecord, now: number): boolean {
  const hasBegun = timestamp <= now + CLOCK_SKEW_S && timestamp + ttl >= now;
  return hasBegun && isWindowOpen(delegation, now);
}

/** The error of a record that another key signed than the one that its delegation names. */
export function badRecordSignature(): SvcError {
  return bad("the signature is not the operational key's");
}

/**
 * Which of two records of one AID and type counts: the later delegation, then the higher seq, then
 * the later timestamp; equal ones are told apart by their bytes, so that all nodes agree.
 * @returns above 0 where `a` is the newer, below 0 where `b` is, 0 where they are the same
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

/** Unix seconds at which a record ends. */
export function expiresAt(record: Pick<SignedRecord, 'timestamp' | 'ttl'>): number {
  return record.timestamp + record.ttl;
}
