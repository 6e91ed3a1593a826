/** Entries of a group: their one encoding, their signature and their name. Format: docs/protocol-groups.md. */
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
const ENTRY_DOMAIN = new TextEncoder().encode('svcd/room-entry/v1\0');
const GROUP_DOMAIN = new TextEncoder().encode('svcd/room/v1\0');
const JOIN_DOMAIN = new TextEncoder().encode('svcd/room-join/v1\0');
const JOIN_KEY_DOMAIN = new TextEncoder().encode('svcd/room-join-key/v1\0');

/** The key `s` and the head of its 64 bytes, in CBOR. */
const SIGNATURE_MEMBER: Uint8Array = Uint8Array.of(0x61, 0x73, 0x58, 0x40);

/** Largest entry that is looked at, bytes. */
export const MAX_ENTRY_BYTES = 10_240;
/** Parents that one entry names at most. */
export const MAX_PARENTS = 32;
/** Longest kind and longest reference, characters. */
export const MAX_KIND_LENGTH = 32;
/** Greatest distance from the first entry: a group has no more entries in a row. */
export const MAX_DEPTH = 200_000;
const KIND = new RegExp(KIND_PATTERN);

/** What an author writes. */
export interface EntryContent {
  /** Lower-case hex of the group's id. */
  readonly groupId: string;
  readonly author: Aid;
  /** Lower-case hex of the parents' ids, ascending. */
  readonly parents: readonly string[];
  /** 0 for the first entry, otherwise one more than the deepest parent. */
  readonly depth: number;
  /** Unix milliseconds, never before a parent's. */
  readonly at: number;
  readonly kind: string;
  readonly body?: Uint8Array | undefined;
  readonly ref?: string | undefined;
  /** Lower-case hex of an entry id. */
  readonly replyTo?: string | undefined;
  readonly to?: readonly Aid[] | undefined;
  /** `create`: the nonce and the public join key; `join` by link: the proof of the join secret. */
  readonly proof?: Uint8Array | undefined;
}

export interface Entry extends EntryContent {
  /** Lower-case hex of SHA-256 over `encoded`. */
  readonly id: string;
  readonly delegation: Delegation;
  readonly signature: Uint8Array;
  readonly encoded: Uint8Array;
}

/** Why bytes are no entry. */
export function badEntry(reason: string): SvcError {
  return new SvcError('bad_record', { message: `The group entry is refused: ${reason}.`, details: { reason } });
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
}

/** Bytes of a name in lower-case hex. */
export function hashBytes(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

/** The id of the group that a creator makes with a nonce. */
export function groupIdOf(creator: Aid, nonce: Uint8Array): string {
  return toHex(sha256(GROUP_DOMAIN, aidToBytes(creator), nonce));
}

/** The key that whoever knows the join secret signs with; the group knows its public half. */
export function joinKey(secret: Uint8Array): KeyPair {
  return KeyPair.fromSeed(sha256(JOIN_KEY_DOMAIN, secret));
}

function joinInput(groupId: string, joiner: Aid): Uint8Array {
  return Buffer.concat([JOIN_DOMAIN, hashBytes(groupId), aidToBytes(joiner)]);
}

/** Proves the join secret, for one joiner only. */
export function proveSecret(secret: Uint8Array, groupId: string, joiner: Aid): Uint8Array {
  return joinKey(secret).sign(joinInput(groupId, joiner));
}

/** True where the proof was made with the secret of this public join key, for this joiner. */
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

/** What was signed, as it stands in an encoded entry: its map without the member `s`. */
function signedPart({ at, proof, replyTo, signature, encoded }: Entry): Uint8Array {
  const behind = encodeCbor({ t: at, v: VERSION, x: proof, y: replyTo === undefined ? undefined : hashBytes(replyTo) });
  // Each member of a map stands in the order of its key; the first byte counts them.
  const end = encoded.length - (behind.length - 1);
  const start = end - SIGNATURE_MEMBER.length - signature.length;
  const count = Uint8Array.of((encoded[0] ?? 0) - 1);
  return Buffer.concat([ENTRY_DOMAIN, count, encoded.subarray(1, start), encoded.subarray(end)]);
}

/** Signs an entry. @throws SvcError `bad_record` where a field is over its limit */
export function signEntry(content: EntryContent, identity: LocalIdentity): Entry {
  const { delegation } = identity;
  const signature = identity.sign(signingInput(content, delegation));
  return decodeEntry(encodeCbor({ ...mapOf(content, delegation), s: signature }));
}

function hashList(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > MAX_PARENTS) throw badEntry('too many parents');
  const names = value.map((item: unknown) => hashText(item, 'parent'));
  if (names.some((name, i) => i > 0 && name <= (names[i - 1] ?? ''))) throw badEntry('parents are not in order');
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
  throw badEntry('malformed agent id');
}

function aidList(value: unknown): Aid[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_MENTIONS) throw badEntry('malformed mentions');
  const aids = value.map(readAid);
  if (new Set(aids).size !== aids.length) throw badEntry('somebody is mentioned twice');
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
 * Reads an entry. It is well-formed then; nothing about it has been proven yet.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export function decodeEntry(bytes: Uint8Array): Entry {
  // protocol-groups.md, "Entries"
  let decoded: unknown;
  try {
    decoded = decodeCbor(bytes, MAX_ENTRY_BYTES);
  } catch (error) {
    throw new SvcError('bad_record', { message: 'The group entry is malformed.', cause: error });
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
 * Verifies what an entry says about itself: that its author's operational key signed it, and that
 * the key might act for the author when it was written. Works on other threads.
 * @throws SvcError `bad_record`, `bad_delegation`
 */
export async function verifyEntry(
  entry: Entry,
  delegations: Pick<DelegationVerifier, 'verifyAsync'>,
  keys: VerifierKeys = new VerifierKeys(),
): Promise<void> {
  // protocol-groups.md, step 1
  const { delegation } = entry;
  if (delegation.agent !== entry.author) throw badEntry("the delegation is not the author's");
  await delegations.verifyAsync(delegation, Math.floor(entry.at / 1000));
  const good = await keys.verify(delegation.operationalKey, signedPart(entry), entry.signature);
  if (!good) throw badEntry('the signature does not verify');
}
