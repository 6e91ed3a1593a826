/** The exact bytes of notes, from test/vectors/notes.json, for every implementation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Inbox } from '../../../src/capabilities/notes/inbox.ts';
import {
  decodeLetter,
  encodeLetter,
  LetterVerifier,
  messageId,
  NoteOpener,
  sealLetter,
} from '../../../src/capabilities/notes/letter.ts';
import { NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import { type Aid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { sealingKeyOf } from '../../../src/foundation/keys/sealed-box.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { belongsUnderKey } from '../../../src/foundation/records/keys.ts';
import { decodeNotePayload, noteHeader, removalHash } from '../../../src/foundation/records/notes.ts';
import { decodeEncryptionKeysPayload, encryptionKeyId } from '../../../src/foundation/records/payloads.ts';
import { decodeRecord } from '../../../src/foundation/records/record.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { NoteStore } from '../../../src/foundation/store/notes.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import type { LocalIdentity } from '../../../src/network/links/types.ts';
import { noteVectors } from '../../../tools/vectors/notes.ts';
import { MemorySecrets } from '../../support/mail-world.ts';
import { verifyRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';
import { hex, readVectors } from '../../support/vectors.ts';

interface NoteVectors {
  readonly now: number;
  readonly recipient: { aid: string; operational_seed_hex: string; delegation_hex: string };
  readonly keys: readonly {
    aid: string;
    operational_seed_hex: string;
    now: number;
    start: number;
    private_key_hex: string;
    public_key_hex: string;
    key_id_hex: string;
  }[];
  readonly key_record: { payload_hex: string; record_hex: string; stored_under_hex: string };
  readonly notes: readonly {
    name: string;
    sender: string;
    sender_operational_seed_hex: string;
    delegation_hex: string;
    sent_at_ms: number;
    msg_type: number;
    body_hex: string;
    nonce_hex: string;
    letter_hex: string;
    message_id_hex: string;
    header_hex: string;
    removal_hash_hex: string;
    payload_hex: string;
    record_hex: string;
    stored_under_hex: string;
  }[];
  readonly takings: readonly {
    why: string;
    verdict: string;
    now: number;
    newest_delegation: number;
    record_hex: string;
  }[];
}

const vectors = readVectors('notes') as NoteVectors;
const RECIPIENT = parseAid(vectors.recipient.aid);

function identityOf(seedHex: string, delegationHex: string): LocalIdentity {
  const key = KeyPair.fromSeed(hex(seedHex));
  const delegation = decodeDelegation(hex(delegationHex));
  return { aid: delegation.agent, delegation, sign: (message) => key.sign(message) };
}

const recipient = identityOf(vectors.recipient.operational_seed_hex, vectors.recipient.delegation_hex);

function keysOf(identity: (aid: Aid) => LocalIdentity | null, clock: TestClock): NoteKeys {
  return new NoteKeys(new MemorySecrets(), clock, identity);
}

test('the file is the output of the tool', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(noteVectors())), vectors);
});

for (const { aid: text, operational_seed_hex, now, start, ...key } of vectors.keys)
  test(`the key of ${text} at ${now}`, () => {
    const aid = parseAid(text);
    const { delegation } = recipient;
    const operational = KeyPair.fromSeed(hex(operational_seed_hex));
    const identity = { aid, delegation, sign: (message: Uint8Array) => operational.sign(message) };
    const { publicKey, createdAt } = keysOf(() => identity, new TestClock(now * 1000)).current(aid);
    assert.equal(createdAt, start);
    assert.equal(toHex(publicKey), key.public_key_hex);
    assert.equal(toHex(sealingKeyOf(hex(key.private_key_hex)).publicKey), key.public_key_hex);
    assert.equal(toHex(encryptionKeyId(publicKey)), key.key_id_hex);
  });

test('the record of a key', () => {
  const record = decodeRecord(hex(vectors.key_record.record_hex));
  verifyRecord(record, vectors.now);
  assert.ok(belongsUnderKey(record, hex(vectors.key_record.stored_under_hex)));
  assert.equal(toHex(record.payload), vectors.key_record.payload_hex);
  const [first] = decodeEncryptionKeysPayload(record.payload) ?? [];
  assert.equal(toHex(first?.publicKey ?? new Uint8Array()), vectors.keys[0]?.public_key_hex);
});

for (const note of vectors.notes)
  test(`a note is written and read as the file has it: ${note.name}`, async () => {
    const [key] = vectors.keys;
    assert.ok(key !== undefined);
    const sealedTo = hex(key.public_key_hex);
    const content = {
      sender: parseAid(note.sender),
      recipient: RECIPIENT,
      sentAt: note.sent_at_ms,
      msgType: note.msg_type,
      body: hex(note.body_hex),
      nonce: hex(note.nonce_hex),
    };
    assert.equal(toHex(messageId(content)), note.message_id_hex);
    const writer = identityOf(note.sender_operational_seed_hex, note.delegation_hex);
    assert.equal(toHex(encodeLetter(content, writer, sealedTo)), note.letter_hex);

    const record = decodeRecord(hex(note.record_hex));
    verifyRecord(record, vectors.now);
    assert.ok(belongsUnderKey(record, hex(note.stored_under_hex)));
    const sealed = decodeNotePayload(record.payload) ?? assert.fail();
    assert.equal(toHex(record.payload), note.payload_hex);
    assert.equal(toHex(noteHeader(sealed)), note.header_hex);
    assert.equal(toHex(removalHash(content.nonce)), note.removal_hash_hex);
    const opener = new NoteOpener(sealingKeyOf(hex(key.private_key_hex)));
    const opened = opener.open(sealed, RECIPIENT);
    assert.equal(toHex(opened), note.letter_hex);
    const letter = decodeLetter(opened, RECIPIENT);
    await new LetterVerifier({ delegations: new DelegationVerifier() }).verify(letter, sealedTo);
    assert.deepEqual({ ...content, delegation: letter.delegation, signature: letter.signature }, letter);

    // Sealed by this code with a random key, it has the same header, length and content.
    const own = sealLetter(hex(note.letter_hex), content.nonce, RECIPIENT, sealedTo);
    assert.equal(own.length, record.payload.length);
    assert.equal(toHex(noteHeader(decodeNotePayload(own) ?? assert.fail())), note.header_hex);
    assert.equal(toHex(opener.open(decodeNotePayload(own) ?? assert.fail(), RECIPIENT)), note.letter_hex);
  });

for (const { why, verdict, now, newest_delegation, record_hex } of vectors.takings)
  test(`${verdict}: ${why}`, async () => {
    const clock = new TestClock(now * 1000);
    const db = Store.open(':memory:', MIGRATIONS);
    const { delegation } = recipient;
    new AgentStore(db).put({ keyName: 'x', delegation, serviceTcp: '', registeredAt: 0 });
    const inbox = new Inbox({
      store: new NoteStore(db),
      keys: keysOf((aid) => (aid === RECIPIENT ? recipient : null), clock),
      delegations: new DelegationVerifier(),
      clock,
      log: silentLog,
      events: { emit: () => 0 },
      newestDelegation: () => newest_delegation,
      isKnown: () => false,
    });
    const record = decodeRecord(hex(record_hex));
    verifyRecord(record, now);
    const [receipt] = await inbox.accept(RECIPIENT, [record]);
    assert.equal(receipt?.verdict, verdict);
  });
