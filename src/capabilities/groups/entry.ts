/** Entries of a group: encoding, signature and ID. Format: docs/protocol-groups.md. */
import { createHash } from 'node:crypto';
import { toHex } from '../../foundation/bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import {
  HASH_BYTES,
  KIND_PATTERN,
  MAX_ENTRY_BODY_BYTES,
  MAX_MENTIONS,
  MAX_REF_CHARS,
} from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidFromBytes, aidToBytes } from '../../foundation/identity/aid.ts';
import { type Delegation, decodeDelegation, encodeDelegation } from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { SIGNATURE_BYTES } from '../../foundation/identity/ed25519.ts';
import { KeyPair, VerifierKeys, verifySignature } from '../../foundation/identity/keys.ts';
import type { LocalIdentity } from '../../network/links/types.ts';

const VERSION = 1;
const ENTRY_DOMAIN = new TextEncoder().encode('svcd/group-entry/v1\0');
const GROUP_DOMAIN = new TextEncoder().encode('svcd/group/v1\0');
const JOIN_DOMAIN = new TextEncoder().encode('svcd/group-join/v1\0');
const JOIN_KEY_DOMAIN = new TextEncoder().encode('svcd/group-join-key/v1\0');

/** The CBOR key `s` and the header of its 64 bytes. */
const SIGNATURE_MEMBER: Uint8Array = Uint8Array.of(0x61, 0x73, 0x58, 0x40);

/** Largest entry, bytes. */
export const MAX_ENTRY_BYTES = 10_240;
/** Limit of parents of one entry. */
export const MAX_PARENTS = 32;
/** Longest kind and reference, characters. */
export const MAX_KIND_LENGTH = 32;
/** Largest distance from the first entry. */
export const MAX_DEPTH = 200_000;
const KIND = new RegExp(KIND_PATTERN);

/** The fields that the author sets. */
export interface EntryContent {
  /** Group ID, lower-case hex. */
  readonly groupId: string;
  readonly author: Aid;
  /** IDs of the parents, lower-case hex, ascending. */
  readonly parents: readonly string[];
  /** 0 for the first entry, otherwise one more than the deepest parent. */
  readonly depth: number;
  /** Unix milliseconds. At least the time of each parent. */
  readonly at: number;
  readonly kind: string;
  readonly body?: Uint8Array | undefined;
  readonly ref?: string | undefined;
  /** Entry ID, lower-case hex. */
  readonly replyTo?: string | undefined;
  readonly to?: readonly Aid[] | undefined;
  /** `create`: the nonce and the public join key. `join` by link: the proof of the join secret. */
  readonly proof?: Uint8Array | undefined;
}

export interface Entry extends EntryContent {
  /** SHA-256 of `encoded`, lower-case hex. */
  readonly id: string;
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
  readonly encoded: Uint8Array;
}

/** The error for bytes that are not a valid entry. */
export function badEntry(reason: string): SvcError {
  return new SvcError('bad_record', { message: `Invalid group entry: ${reason}.`, details: { reason } });
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
}

/** The bytes of a lower-case hex ID. */
export function hashBytes(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

/** The ID of the group that a creator makes with a nonce. */
export function groupIdOf(creator: Aid, nonce: Uint8Array): string {
  return toHex(sha256(GROUP_DOMAIN, aidToBytes(creator), nonce));
}

/** The key pair of a join secret. The group stores only its public half. */
export function joinKey(secret: Uint8Array): KeyPair {
  return KeyPair.fromSeed(sha256(JOIN_KEY_DOMAIN, secret));
}

function joinInput(groupId: string, joiner: Aid): Uint8Array {
  return Buffer.concat([JOIN_DOMAIN, hashBytes(groupId), aidToBytes(joiner)]);
}

/** Proves the knowledge of the join secret, for one joining agent only. */
export function proveSecret(secret: Uint8Array, groupId: string, joiner: Aid): Uint8Array {
  return joinKey(secret).sign(joinInput(groupId, joiner));
}

/** Whether a proof was made for this agent with the secret of this public join key. */
export function provesSecret(publicKey: Uint8Array, groupId: string, joiner: Aid, proof: Uint8Array): boolean {
  return verifySignature(publicKey, joinInput(groupId, joiner), proof);
}

function mapOf(content: EntryContent, delegation: Delegation) {
  return {
    v: VERSION,
    g: hashBytes(content.groupId),
    a: aidToBytes(content.author),
    p: content.parents.map(hashBytes),
    n: content.depth,
    t: content.at,
    k: content.kind,
    b: content.body,
    r: content.ref,
    y: content.replyTo === undefined ? undefined : hashBytes(content.replyTo),
    m: content.to?.map(aidToBytes),
    x: content.proof,
    d: encodeDelegation(delegation),
  };
}

function signingInput(content: EntryContent, delegation: Delegation): Uint8Array {
  return Buffer.concat([ENTRY_DOMAIN, encodeCbor(mapOf(content, delegation))]);
}

/** The signed bytes of an encoded entry: its map without the key `s`. */
function signedPart({ at, proof, replyTo, signature, encoded }: Entry): Uint8Array {
  const behind = encodeCbor({ t: at, v: VERSION, x: proof, y: replyTo === undefined ? undefined : hashBytes(replyTo) });
  // The keys of a map are sorted, and the first byte of a map counts them.
  const end = encoded.length - (behind.length - 1);
  const start = end - SIGNATURE_MEMBER.length - signature.length;
  const count = Uint8Array.of((encoded[0] ?? 0) - 1);
  return Buffer.concat([ENTRY_DOMAIN, count, encoded.subarray(1, start), encoded.subarray(end)]);
}

/** Signs an entry. @throws SvcError `bad_record` if a field exceeds its limit */
export function signEntry(content: EntryContent, identity: LocalIdentity): Entry {
  const { delegation } = identity;
  const signature = identity.sign(signingInput(content, delegation));
  return decodeEntry(encodeCbor({ ...mapOf(content, delegation), s: signature }));
}

function hashList(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > MAX_PARENTS) throw badEntry('too many parents');
  const names = value.map((item: unknown) => hashText(item, 'parent'));
  if (names.some((name, i) => i > 0 && name <= (names[i - 1] ?? '')))
    throw badEntry('parents are not in ascending order');
  return names;
}

function hashText(value: unknown, what: string): string {
  if (!isBytes(value, HASH_BYTES)) throw badEntry(`malformed ${what}`);
  return toHex(value);
}

function readAid(value: unknown): Aid {
  try {
    if (isBytes(value)) return aidFromBytes(value);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
  }
  throw badEntry('malformed agent ID');
}

function aidList(value: unknown): Aid[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_MENTIONS) throw badEntry('malformed mentions');
  const aids = value.map(readAid);
  if (new Set(aids).size !== aids.length) throw badEntry('an agent is mentioned twice');
  return aids;
}

function isText(value: unknown, max: number): value is string {
  return typeof value === 'string' && value.length <= max;
}

function optionalFields(map: Readonly<Record<string, unknown>>) {
  const { b: body, r: ref, y: replyTo, m: to, x: proof } = map;
  if (body !== undefined && !(isBytes(body) && body.length <= MAX_ENTRY_BODY_BYTES)) throw badEntry('malformed body');
  if (ref !== undefined && !isText(ref, MAX_REF_CHARS)) throw badEntry('malformed reference');
  if (proof !== undefined && !isBytes(proof, SIGNATURE_BYTES)) throw badEntry('malformed proof');
  return {
    body,
    ref,
    replyTo: replyTo === undefined ? undefined : hashText(replyTo, 'reply'),
    to: to === undefined ? undefined : aidList(to),
    proof,
  };
}

/**
 * Decodes an entry. The result is well-formed, but nothing is verified yet.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export function decodeEntry(bytes: Uint8Array): Entry {
  // protocol-groups.md, "Entries"
  let decoded: unknown;
  try {
    decoded = decodeCbor(bytes, MAX_ENTRY_BYTES);
  } catch (error) {
    throw new SvcError('bad_record', { message: 'Malformed group entry.', cause: error });
  }
  const map = asMap(decoded, ['v', 'g', 'a', 'p', 'n', 't', 'k', 'd', 's'], ['b', 'r', 'y', 'm', 'x']);
  if (map === null || map['v'] !== VERSION) throw badEntry('unknown format');
  const { n: depth, t: at, k: kind, d: proofOfKey, s: signature } = map;
  if (!isUint(depth, MAX_DEPTH)) throw badEntry('malformed depth');
  if (!isUint(at)) throw badEntry('malformed time');
  if (!isText(kind, MAX_KIND_LENGTH) || !KIND.test(kind)) throw badEntry('malformed kind');
  if (!isBytes(proofOfKey)) throw badEntry('malformed delegation');
  if (!isBytes(signature, SIGNATURE_BYTES)) throw badEntry('malformed signature');
  const encoded = Uint8Array.from(bytes);
  return {
    groupId: hashText(map['g'], 'group'),
    author: readAid(map['a']),
    parents: hashList(map['p']),
    depth,
    at,
    kind,
    ...optionalFields(map),
    delegation: decodeDelegation(proofOfKey),
    signature,
    encoded,
    id: toHex(sha256(encoded)),
  };
}

/**
 * Verifies that the operational key of the author signed the entry, and that the key was valid at that time. Runs on
 * worker threads.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export async function verifyEntry(
  entry: Entry,
  delegations: DelegationVerifier,
  keys: VerifierKeys = new VerifierKeys(),
): Promise<void> {
  // protocol-groups.md, step 1
  const { delegation } = entry;
  if (delegation.agent !== entry.author) throw badEntry('the delegation belongs to another agent');
  await delegations.verifyAsync(delegation, Math.floor(entry.at / 1000));
  const good = await keys.verify(delegation.operationalKey, signedPart(entry), entry.signature);
  if (!good) throw badEntry('invalid signature');
}
