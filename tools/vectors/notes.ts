import { createHash, hkdfSync } from 'node:crypto';
import { toHex } from '../../src/foundation/bytes.ts';
import { type CborValue, encodeCbor } from '../../src/foundation/cbor.ts';
import { type Aid, aidToBytes } from '../../src/foundation/identity/aid.ts';
import {
  type Delegation,
  encodeDelegation,
  issueDelegation,
  selfDelegation,
} from '../../src/foundation/identity/delegation.ts';
import type { KeyPair } from '../../src/foundation/identity/keys.ts';
import { agentKey, mailboxKey } from '../../src/foundation/records/keys.ts';
import { encodeEncryptionKeysPayload, encryptionKeyId } from '../../src/foundation/records/payloads.ts';
import { type SignedRecord, signRecord } from '../../src/foundation/records/record.ts';
import { RECORD } from '../../src/foundation/records/types.ts';
import { hexOf, NOW, phraseBytes, phrasePair, turned } from './common.ts';
import { ETHEREUM, NATIVE, OPERATIONAL } from './delegation.ts';
import { hpkeSeal, x25519Public } from './hpke.ts';

const DAY_S = 86_400;
const PERIOD_S = 30 * DAY_S;
const PADDING = 256;
const NOW_MS = NOW * 1000;

const RECIPIENT_KEY = phrasePair('operational key of a recipient');
const RECIPIENT: Delegation = issueDelegation(phrasePair('master key of a recipient'), RECIPIENT_KEY.publicKey, NOW);
const ONCE = phrasePair('one-time identity of a note');

function u64(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

function periodStart(aid: Aid, now: number): number {
  const offset = createHash('sha256').update(aidToBytes(aid)).digest().readUInt32BE(0) % PERIOD_S;
  return Math.max(0, Math.floor((now + offset) / PERIOD_S) * PERIOD_S - offset);
}

/** The encryption key of an agent's period (docs/protocol-notes.md). */
function noteKey(aid: Aid, operational: KeyPair, start: number) {
  const domain = Buffer.from('svcd/note-key/v1\0');
  const secret = operational.sign(Buffer.concat([domain, aidToBytes(aid), u64(start)]));
  const privateKey = new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), domain, 32));
  return { secret, privateKey, publicKey: x25519Public(privateKey) };
}

const START = periodStart(RECIPIENT.agent, NOW);
const SEALED_TO = noteKey(RECIPIENT.agent, RECIPIENT_KEY, START);

function derivations() {
  const cases: [Delegation, KeyPair, number][] = [
    [RECIPIENT, RECIPIENT_KEY, NOW],
    [RECIPIENT, RECIPIENT_KEY, NOW - PERIOD_S],
    [RECIPIENT, RECIPIENT_KEY, START - 1],
    [ETHEREUM, OPERATIONAL, NOW],
  ];
  return cases.map(([{ agent }, operational, now]) => {
    const start = periodStart(agent, now);
    const { secret, privateKey, publicKey } = noteKey(agent, operational, start);
    return {
      aid: agent,
      operational_seed_hex: toHex(operational.seed),
      now,
      start,
      secret_hex: toHex(secret),
      private_key_hex: toHex(privateKey),
      public_key_hex: toHex(publicKey),
      key_id_hex: toHex(encryptionKeyId(publicKey)),
    };
  });
}

function keyRecord() {
  const payload = encodeEncryptionKeysPayload([{ publicKey: SEALED_TO.publicKey, createdAt: START }]);
  const { agent: aid } = RECIPIENT;
  const content = { aid, type: RECORD.encryptionKeys, seq: 1, timestamp: NOW, ttl: PERIOD_S, payload };
  const record = signRecord({ ...content, delegation: RECIPIENT }, RECIPIENT_KEY);
  return {
    payload_hex: toHex(payload),
    record_hex: toHex(record.encoded),
    stored_under_hex: toHex(agentKey(aid)),
  };
}

/** A letter, and how it departs from a right one. */
interface Letter {
  readonly delegation?: Delegation;
  readonly key?: KeyPair;
  readonly sentAt?: number;
  readonly msgType?: number;
  readonly body?: Uint8Array;
  /** Signed values that replace the recipient and the key. */
  readonly signedFor?: Aid;
  readonly signedTo?: Uint8Array;
  /** Members in addition to or instead of the correct ones. */
  readonly members?: Readonly<Record<string, CborValue | undefined>>;
}

const NONCE = phraseBytes('nonce of a letter').slice(0, 16);

function letterOf(letter: Letter) {
  const { delegation = NATIVE, key = OPERATIONAL, sentAt = NOW_MS, msgType = 3, body = Buffer.from('Grüße') } = letter;
  const { signedFor = RECIPIENT.agent, signedTo = SEALED_TO.publicKey } = letter;
  const plain = { v: 1, d: encodeDelegation(delegation), t: sentAt, y: msgType, b: body, n: NONCE, ...letter.members };
  const bound = { ...plain, r: aidToBytes(signedFor), k: signedTo };
  const signingInput = Buffer.concat([Buffer.from('svcd/note/v1\0'), encodeCbor(bound)]);
  const signature = key.sign(signingInput);
  const content = {
    f: aidToBytes(delegation.agent),
    r: aidToBytes(RECIPIENT.agent),
    t: sentAt,
    y: msgType,
    b: body,
    n: NONCE,
  };
  const id = createHash('sha256').update('svcd/note-id/v1\0').update(encodeCbor(content)).digest('hex');
  return {
    delegation,
    sentAt,
    msgType,
    body,
    signingInput,
    signature,
    id,
    encoded: encodeCbor({ ...plain, g: signature }),
  };
}

function padded(letter: Uint8Array, length = letter.length): Uint8Array {
  const text = Buffer.alloc(Math.ceil((4 + letter.length) / PADDING) * PADDING);
  text.writeUInt32BE(length);
  text.set(letter, 4);
  return text;
}

/** How a sealing departs from a right one. */
interface Departure {
  readonly mailbox?: Aid;
  readonly sealedTo?: Uint8Array;
  readonly infoFor?: Aid;
  readonly removalOf?: Uint8Array;
  readonly version?: number;
  readonly length?: number;
}

function seal(letter: Uint8Array, departure: Departure = {}) {
  const { mailbox = RECIPIENT.agent, infoFor = RECIPIENT.agent, removalOf = NONCE, version = 1 } = departure;
  const { sealedTo = SEALED_TO.publicKey, length } = departure;
  const removal = createHash('sha256').update('svcd/note-removal/v1\0').update(removalOf).digest().subarray(0, 16);
  const header = Buffer.concat([mailboxKey(mailbox), Buffer.of(version), removal, encryptionKeyId(sealedTo)]);
  const info = Buffer.concat([Buffer.from('svcd/note-seal/v1\0'), aidToBytes(infoFor)]);
  const ephemeral = phraseBytes('ephemeral key of a note');
  const text = padded(letter, length);
  const sealed = hpkeSeal({ recipient: sealedTo, ephemeral, info, aad: header, text });
  const payload = Buffer.concat([header, sealed.encapsulated, sealed.ciphertext]);
  return { header, removal, info, ephemeral, text, payload, ...sealed };
}

function record(payload: Uint8Array, timestamp = NOW): SignedRecord {
  const delegation = selfDelegation(ONCE);
  const content = { aid: delegation.agent, type: RECORD.note, seq: 1, timestamp, ttl: 7 * DAY_S, payload, delegation };
  return signRecord(content, ONCE);
}

function whole(name: string, from: Letter) {
  const letter = letterOf(from);
  const sealed = seal(letter.encoded);
  return {
    name,
    sender: letter.delegation.agent,
    sender_operational_seed_hex: toHex((from.key ?? OPERATIONAL).seed),
    delegation_hex: toHex(encodeDelegation(letter.delegation)),
    sent_at_ms: letter.sentAt,
    msg_type: letter.msgType,
    body_hex: toHex(letter.body),
    nonce_hex: toHex(NONCE),
    signing_input_hex: toHex(letter.signingInput),
    signature_hex: toHex(letter.signature),
    letter_hex: toHex(letter.encoded),
    message_id_hex: letter.id,
    info_hex: toHex(sealed.info),
    header_hex: toHex(sealed.header),
    removal_hash_hex: toHex(sealed.removal),
    padded_hex: toHex(sealed.text),
    ephemeral_private_key_hex: toHex(sealed.ephemeral),
    encapsulated_hex: toHex(sealed.encapsulated),
    ciphertext_hex: toHex(sealed.ciphertext),
    payload_hex: toHex(sealed.payload),
    record_hex: toHex(record(sealed.payload).encoded),
    stored_under_hex: toHex(mailboxKey(RECIPIENT.agent)),
  };
}

interface Taking {
  readonly why: string;
  readonly verdict: 'kept' | 'refused' | 'unknown_key';
  readonly payload: Uint8Array;
  /** Unix seconds at which it is taken. */
  readonly now?: number;
  /** `issued_at` of the newest delegation of the sender that the recipient has seen. */
  readonly newest?: number;
}

function takings(): Taking[] {
  const right = letterOf({}).encoded;
  const good = seal(right).payload;
  const from = (letter: Letter) => seal(letterOf(letter).encoded).payload;
  const earlier = noteKey(RECIPIENT.agent, RECIPIENT_KEY, START - 2 * PERIOD_S);
  const toEarlier = seal(letterOf({ signedTo: earlier.publicKey }).encoded, { sealedTo: earlier.publicKey });
  const stranger = x25519Public(phraseBytes('x25519 of a stranger'));
  const ended = issueDelegation(phrasePair('master'), OPERATIONAL.publicKey, NOW - DAY_S, NOW - 3600);
  const early = issueDelegation(phrasePair('master'), OPERATIONAL.publicKey, NOW + 61);
  const refused = (why: string, payload: Uint8Array, more: Partial<Taking> = {}): Taking => ({
    why,
    verdict: 'refused',
    payload,
    ...more,
  });
  const kept = (why: string, payload: Uint8Array, more: Partial<Taking> = {}): Taking => ({
    why,
    verdict: 'kept',
    payload,
    ...more,
  });
  return [
    kept('as it should be', good),
    kept('7 days and 60 seconds after it was sent, in a record that was made later', good, {
      now: NOW + 7 * DAY_S + 60,
    }),
    refused('a second later', good, { now: NOW + 7 * DAY_S + 61 }),
    kept('60 seconds before it was sent', from({ sentAt: NOW_MS + 60_000 })),
    refused('61 seconds before it was sent', from({ sentAt: NOW_MS + 61_000 })),
    kept('sealed to the key of two periods ago', toEarlier.payload),
    { why: 'sealed to another key', verdict: 'unknown_key', payload: seal(right, { sealedTo: stranger }).payload },
    kept('the sender has another key since, and wrote before', good, { newest: NOW + 1, now: NOW + 10 }),
    refused('the sender has another key since, and wrote 61 seconds later', from({ sentAt: NOW_MS + 62_000 }), {
      newest: NOW + 1,
      now: NOW + 70,
    }),
    refused('the delegation had expired', from({ delegation: ended })),
    kept(
      'the delegation was issued later: the key was replaced while the note was queued',
      from({ sentAt: NOW_MS - 61_000 }),
    ),
    refused('the delegation is from the future', from({ delegation: early })),
    refused("another's mailbox", seal(right, { mailbox: NATIVE.agent }).payload),
    refused('version 2', seal(right, { version: 2 }).payload),
    refused('sealed for another agent', seal(right, { infoFor: NATIVE.agent }).payload),
    refused('signed for another recipient', from({ signedFor: NATIVE.agent })),
    refused('signed for another key', from({ signedTo: stranger })),
    refused('signed by another', from({ key: phrasePair('stranger') })),
    refused('the removal hash of another nonce', seal(right, { removalOf: phraseBytes('x').slice(0, 16) }).payload),
    refused('a turned bit in the removal hash', turned(good, 40)),
    refused('a turned bit in the encapsulated key', turned(good, 60)),
    refused('a turned bit in the ciphertext', turned(good, 100)),
    refused('a turned bit in the tag', turned(good, -1)),
    refused('a length beyond the padding', seal(right, { length: 10_000 }).payload),
    refused('a length that cuts the letter', seal(right, { length: right.length - 1 }).payload),
    refused('a member too many', from({ members: { x: 1 } })),
    refused('a member too few', from({ members: { y: undefined } })),
    refused('version 2 of the letter', from({ members: { v: 2 } })),
    refused('a nonce of 15 bytes', from({ members: { n: NONCE.slice(1) } })),
    refused('a msg_type beyond 32 bits', from({ members: { y: 2 ** 32 } })),
  ];
}

export function noteVectors(): unknown {
  return {
    now: NOW,
    recipient: {
      aid: RECIPIENT.agent,
      operational_seed_hex: toHex(RECIPIENT_KEY.seed),
      delegation_hex: toHex(encodeDelegation(RECIPIENT)),
    },
    keys: derivations(),
    key_record: keyRecord(),
    notes: [
      whole('text, of a native agent', {}),
      whole('bytes, of an Ethereum agent', { delegation: ETHEREUM, msgType: 2 ** 32 - 1, body: phraseBytes('body') }),
      whole('an empty body', { msgType: 0, body: new Uint8Array(), sentAt: NOW_MS + 999 }),
    ],
    removal: { token_hex: toHex(NONCE), removal_hash_hex: hexOf(seal(new Uint8Array(1)).removal) },
    takings: takings().map(({ why, verdict, payload, now = NOW, newest = 0 }) => ({
      why,
      verdict,
      now,
      newest_delegation: newest,
      record_hex: toHex(record(payload, now).encoded),
    })),
  };
}
