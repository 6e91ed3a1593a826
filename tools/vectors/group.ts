import {
  type Entry,
  type EntryContent,
  groupIdOf,
  joinKey,
  MAX_ENTRY_BYTES,
  proveSecret,
  signEntry,
} from '../../src/capabilities/groups/entry.ts';
import { toHex } from '../../src/foundation/bytes.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor } from '../../src/foundation/cbor.ts';
import { type Aid, aidToBytes } from '../../src/foundation/identity/aid.ts';
import { type Delegation, encodeDelegation, issueDelegation } from '../../src/foundation/identity/delegation.ts';
import type { KeyPair } from '../../src/foundation/identity/keys.ts';
import { NOW, phraseBytes, phrasePair, turned } from './common.ts';
import { ETHEREUM, NATIVE, OPERATIONAL, PARALISM } from './delegation.ts';

const NOW_MS = NOW * 1000;
const NONCE = phraseBytes('nonce of a room');
const SECRET = phraseBytes('join secret');
const GROUP = groupIdOf(NATIVE.agent, NONCE);

interface Writer {
  readonly delegation: Delegation;
  readonly key: KeyPair;
}

const CREATOR: Writer = { delegation: NATIVE, key: OPERATIONAL };
const INVITED: Writer = { delegation: ETHEREUM, key: OPERATIONAL };
const JOINER: Writer = { delegation: PARALISM, key: OPERATIONAL };
const STRANGER_KEY = phrasePair('operational key of a stranger');
const STRANGER: Writer = {
  delegation: issueDelegation(phrasePair('master key of a stranger'), STRANGER_KEY.publicKey, NOW),
  key: STRANGER_KEY,
};

type Draft = Pick<EntryContent, 'kind'> & Partial<EntryContent>;

/** An entry behind its parents, a second after the latest of them. */
function write({ delegation, key }: Writer, parents: readonly Entry[], draft: Draft): Entry {
  const content: EntryContent = {
    groupId: GROUP,
    author: delegation.agent,
    parents: parents.map(({ id }) => id).sort(),
    depth: parents.reduce((deepest, parent) => Math.max(deepest, parent.depth + 1), 0),
    at: parents.reduce((latest, parent) => Math.max(latest, parent.at + 1000), NOW_MS),
    ...draft,
  };
  const { agent: aid } = delegation;
  return signEntry(content, { aid, delegation, sign: (message) => key.sign(message) });
}

const text = (value: string): Uint8Array => new Uint8Array(Buffer.from(value));

/** A group with admitted and rejected entries. */
function group() {
  const creation = new Uint8Array(Buffer.concat([NONCE, joinKey(SECRET).publicKey]));
  const create = write(CREATOR, [], { kind: 'create', body: text('Übersetzer'), proof: creation });
  const invite = write(CREATOR, [create], { kind: 'invite', to: [ETHEREUM.agent] });
  const join = write(INVITED, [invite], { kind: 'join' });
  const proof = proveSecret(SECRET, GROUP, PARALISM.agent);
  const byLink = write(JOINER, [create], { kind: 'join', proof });
  const message = write(CREATOR, [join, byLink], {
    kind: 'msg',
    body: text('Grüße'),
    ref: 'https://example.org/',
    replyTo: join.id,
    to: [ETHEREUM.agent, PARALISM.agent],
  });
  const office = write(CREATOR, [message], { kind: 'role', to: [ETHEREUM.agent], body: text('admin') });
  const title = write(INVITED, [office], { kind: 'title', body: text('Translators') });
  const removal = write(INVITED, [title], { kind: 'remove', to: [PARALISM.agent] });
  const concurrent = write(JOINER, [title], { kind: 'msg', body: text('beside the removal') });
  const after = write(CREATOR, [removal, concurrent], { kind: 'retract', ref: message.id });
  const entry = (name: string, written: Entry, verdict = 'admitted') => ({ name, written, verdict });
  return [
    entry('create', create),
    entry('invite', invite),
    entry('join by invitation', join),
    entry('join by link', byLink),
    entry('msg with every member', message),
    entry('role', office),
    entry('title', title),
    entry('remove', removal),
    entry('msg of the removed member, beside the removal', concurrent, 'set aside'),
    entry('retract', after),
    entry('a stranger writes', write(STRANGER, [title], { kind: 'msg', body: text('x') }), 'refused'),
    entry('a stranger joins without an invitation', write(STRANGER, [title], { kind: 'join' }), 'refused'),
    entry(
      "a stranger joins with another's proof of the secret",
      write(STRANGER, [title], { kind: 'join', proof }),
      'refused',
    ),
    entry('the removed member writes behind its removal', write(JOINER, [removal], { kind: 'msg' }), 'refused'),
    entry('the removed member joins by link again', write(JOINER, [removal], { kind: 'join', proof }), 'refused'),
    entry(
      'a member gives an office',
      write(JOINER, [title], { kind: 'role', to: [PARALISM.agent], body: text('admin') }),
      'refused',
    ),
    entry('an admin removes the creator', write(INVITED, [title], { kind: 'remove', to: [NATIVE.agent] }), 'refused'),
    entry('the creator leaves', write(CREATOR, [title], { kind: 'leave' }), 'refused'),
    entry('a wrong depth', write(CREATOR, [title], { kind: 'msg', depth: 3 }), 'refused'),
    entry('older than its parent', write(CREATOR, [title], { kind: 'msg', at: NOW_MS }), 'refused'),
  ];
}

function signingInput(entry: Entry): Uint8Array {
  const { s: _signature, ...unsigned } = asMap(decodeCbor(entry.encoded, MAX_ENTRY_BYTES), [], 'any') ?? {};
  return Buffer.concat([Buffer.from('svcd/group-entry/v1\0'), encodeCbor(unsigned as Record<string, CborValue>)]);
}

function described({ name, written, verdict }: ReturnType<typeof group>[number]) {
  const { id, author, parents, depth, at, kind, body, ref, replyTo, to, proof, signature, encoded } = written;
  return {
    name,
    verdict,
    entry_id: id,
    author,
    parents,
    depth,
    at_ms: at,
    kind,
    ...(body === undefined ? {} : { body_hex: toHex(body) }),
    ...(ref === undefined ? {} : { ref }),
    ...(replyTo === undefined ? {} : { reply_to: replyTo }),
    ...(to === undefined ? {} : { to }),
    ...(proof === undefined ? {} : { proof_hex: toHex(proof) }),
    signing_input_hex: toHex(signingInput(written)),
    signature_hex: toHex(signature),
    entry_hex: toHex(encoded),
  };
}

/** Bytes that are not a valid entry, at any position. */
function malformed() {
  const [first] = group();
  const good = first?.written.encoded ?? new Uint8Array();
  const members = asMap(decodeCbor(good, MAX_ENTRY_BYTES), [], 'any') as Record<string, CborValue>;
  const at = (why: string, change: Readonly<Record<string, CborValue | undefined>>) => ({
    why,
    entry_hex: toHex(encodeCbor({ ...members, ...change })),
  });
  const hash = phraseBytes('a parent');
  return [
    { why: 'no CBOR', entry_hex: 'ff' },
    { why: 'something behind the map', entry_hex: `${toHex(good)}00` },
    { why: 'a turned bit in the last member', entry_hex: toHex(turned(good, -1)) },
    at('version 2', { v: 2 }),
    at('a member too many', { z: 1 }),
    at('a member too few', { n: undefined }),
    at('a depth beyond 200,000', { n: 200_001 }),
    at('a kind with a capital letter', { k: 'Msg' }),
    at('parents twice', { p: [hash, hash] }),
    at('33 parents', { p: Array.from({ length: 33 }, (_, i) => Buffer.concat([Buffer.of(i), hash.subarray(1)])) }),
    at('a body of 2,049 bytes', { b: new Uint8Array(2049) }),
    at('an agent named twice', { m: [aidToBytes(NATIVE.agent), aidToBytes(NATIVE.agent)] }),
    at('a proof of 63 bytes', { x: new Uint8Array(63) }),
    at("another agent's delegation", { d: encodeDelegation(STRANGER.delegation) }),
    at('another title under the same signature', { b: text('x') }),
  ];
}

function linkOf(creator: Aid): string {
  return `svc://${creator}/groups/${GROUP}#${Buffer.from(SECRET).toString('base64url')}`;
}

export function groupVectors(): unknown {
  const invitation = { v: 1, g: Buffer.from(GROUP, 'hex'), c: aidToBytes(NATIVE.agent), t: 'Translators', s: SECRET };
  return {
    now: NOW,
    creator: NATIVE.agent,
    nonce_hex: toHex(NONCE),
    group_id: GROUP,
    join: {
      secret_hex: toHex(SECRET),
      key_seed_hex: toHex(joinKey(SECRET).seed),
      public_key_hex: toHex(joinKey(SECRET).publicKey),
      joiner: PARALISM.agent,
      proof_hex: toHex(proveSecret(SECRET, GROUP, PARALISM.agent)),
      link: linkOf(NATIVE.agent),
    },
    invitation: { title: 'Translators', body_hex: toHex(encodeCbor(invitation)) },
    entries: group().map(described),
    members: [
      { aid: NATIVE.agent, role: 'creator' },
      { aid: ETHEREUM.agent, role: 'admin' },
    ],
    title: 'Translators',
    malformed: malformed(),
  };
}
