/** Notes that a mailbox accepts and refuses: forgeries, replays, floods. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  Inbox,
  MAX_MAILBOX_BYTES,
  MAX_SENDER_BYTES,
  MAX_SENDER_NOTES,
  MAX_STRANGERS_NOTES,
} from '../../../src/capabilities/notes/inbox.ts';
import { encodeLetter, type LetterContent, sealLetter } from '../../../src/capabilities/notes/letter.ts';
import { NoteKeys } from '../../../src/capabilities/notes/note-keys.ts';
import { unixSeconds } from '../../../src/foundation/clock.ts';
import { MAX_MAILBOX_NOTES } from '../../../src/foundation/domain/notes.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { decodeNotePayload, encodeNotePayload } from '../../../src/foundation/records/notes.ts';
import type { SignedRecord } from '../../../src/foundation/records/record.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { NoteStore, noteSize } from '../../../src/foundation/store/notes.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { delegateAnew, newIdentity, type TestIdentity } from '../../support/identities.ts';
import { MemorySecrets } from '../../support/mail-world.ts';
import { testRecord } from '../../support/records.ts';
import { TestClock } from '../../support/test-clock.ts';

class World {
  readonly clock = new TestClock();
  readonly db = Store.open(':memory:', MIGRATIONS);
  readonly store = new NoteStore(this.db);
  readonly agents = new AgentStore(this.db);
  readonly identities = new Map<Aid, TestIdentity>();
  readonly newest = new Map<Aid, number>();
  readonly events: unknown[] = [];
  readonly strangers = new Set<Aid>();
  readonly keys = new NoteKeys(new MemorySecrets(), this.clock, (aid) => {
    const one = this.identities.get(aid);
    return one === undefined ? null : { ...one, sign: (message) => one.operational.sign(message) };
  });
  readonly inbox = new Inbox({
    store: this.store,
    keys: this.keys,
    delegations: new DelegationVerifier(),
    clock: this.clock,
    log: silentLog,
    events: { emit: (...event) => this.events.push(event) },
    newestDelegation: (aid) => this.newest.get(aid) ?? 0,
    isKnown: (_, sender) => !this.strangers.has(sender),
  });

  host(identity = newIdentity()): TestIdentity {
    const { aid, delegation } = identity;
    this.agents.put({ keyName: aid, delegation, serviceTcp: '', registeredAt: 0 });
    this.identities.set(aid, identity);
    return identity;
  }

  content(sender: Aid, recipient: Aid, change: Partial<LetterContent> = {}): LetterContent {
    const nonce = new Uint8Array(randomBytes(16));
    return { sender, recipient, sentAt: this.clock.now(), msgType: 1, body: new Uint8Array(10), nonce, ...change };
  }

  /** A letter sealed to its recipient's key, as its sender does it. */
  async seal(writer: TestIdentity, letter: LetterContent): Promise<Uint8Array> {
    const key = this.keys.current(letter.recipient).publicKey;
    const signer = { delegation: writer.delegation, sign: (m: Uint8Array) => writer.operational.sign(m) };
    return sealLetter(encodeLetter(letter, signer, key), letter.nonce, letter.recipient, key);
  }

  record(payload: Uint8Array): SignedRecord {
    return testRecord(newIdentity(), RECORD.note, { payload, timestamp: unixSeconds(this.clock), ttl: 7 * 24 * 3600 });
  }

  async note(writer: TestIdentity, recipient: Aid, change: Partial<LetterContent> = {}): Promise<SignedRecord> {
    return this.record(await this.seal(writer, this.content(writer.aid, recipient, change)));
  }

  async verdict(aid: Aid, record: SignedRecord): Promise<string | undefined> {
    const [receipt] = await this.inbox.accept(aid, [record]);
    return receipt?.verdict;
  }
}

test('a letter that its sender did not sign is refused', async () => {
  const world = new World();
  const [bob, alice, eve] = [world.host(), newIdentity(), newIdentity()];
  // Eve signs with another key and shows Alice's proof.
  const forged = { ...eve, delegation: alice.delegation };
  assert.equal(await world.verdict(bob.aid, await world.note(forged, bob.aid)), 'refused');
  // Eve makes a proof for Alice with a master key that is not Alice's.
  const own = delegateAnew(eve.master);
  const invented = { ...own, delegation: { ...own.delegation, agent: alice.aid } };
  assert.equal(await world.verdict(bob.aid, await world.note(invented, bob.aid)), 'refused');
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid)), 'kept');
});

test('a note for one recipient cannot be forwarded as a note to another', async () => {
  const world = new World();
  const [bob, carol, alice] = [world.host(), world.host(), newIdentity()];
  const letter = world.content(alice.aid, bob.aid);
  const payload = await world.seal(alice, letter);
  // The very bytes under Carol's mailbox.
  const parts = decodeNotePayload(payload) ?? assert.fail();
  const moved = encodeNotePayload({ ...parts, mailbox: mailboxKey(carol.aid) });
  assert.equal(await world.verdict(carol.aid, world.record(moved)), 'unknown_key');
  assert.equal(await world.verdict(carol.aid, world.record(payload)), 'refused');
  // Bob opens the letter and seals it to Carol's key, with the signature.
  const bobs = world.keys.current(bob.aid).publicKey;
  const signer = { delegation: alice.delegation, sign: (m: Uint8Array) => alice.operational.sign(m) };
  const inner = encodeLetter(letter, signer, bobs);
  const again = sealLetter(inner, letter.nonce, carol.aid, world.keys.current(carol.aid).publicKey);
  assert.equal(await world.verdict(carol.aid, world.record(again)), 'refused');
  // It is still valid for Bob.
  const resealed = sealLetter(inner, letter.nonce, bob.aid, bobs);
  assert.equal(await world.verdict(bob.aid, world.record(resealed)), 'kept');
});

test('a note with any changed bit is refused', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const payload = await world.seal(alice, world.content(alice.aid, bob.aid));
  for (let at = 0; at < payload.length; at += 7) {
    const changed = Uint8Array.from(payload);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    assert.match((await world.verdict(bob.aid, world.record(changed))) ?? '', /^(refused|unknown_key)$/, `byte ${at}`);
  }
  for (const length of [0, 32, 33, 57, 88, 89, 105, payload.length - 1])
    assert.notEqual(await world.verdict(bob.aid, world.record(payload.slice(0, length))), 'kept');
  assert.equal(world.events.length, 0);
  assert.equal(await world.verdict(bob.aid, world.record(payload)), 'kept');
});

test('a note in another record is the same note, for as long as a copy can live', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const payload = await world.seal(alice, world.content(alice.aid, bob.aid));
  assert.equal(await world.verdict(bob.aid, world.record(payload)), 'kept');
  for (let day = 0; day < 12; day++) {
    world.store.purgeSeen(world.clock.now(), 100);
    assert.match((await world.verdict(bob.aid, world.record(payload))) ?? '', /^(known|refused)$/, `day ${day}`);
    world.clock.jump(24 * 3600_000);
  }
  assert.equal(world.events.length, 1);
  const together = await world.inbox.accept(bob.aid, [world.record(payload), world.record(payload)]);
  assert.ok(together.every(({ verdict }) => verdict !== 'kept'));
});

test('two copies that arrive at the same time are one note', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const payload = await world.seal(alice, world.content(alice.aid, bob.aid));
  const one = world.record(payload);
  const two = world.record(payload);
  const receipts = (
    await Promise.all([world.inbox.accept(bob.aid, [one, two]), world.inbox.accept(bob.aid, [two])])
  ).flat();
  assert.deepEqual(receipts.map(({ verdict }) => verdict).sort(), ['kept', 'known', 'known']);
});

test('a letter from another time is refused', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const now = world.clock.now();
  world.clock.jump(30 * 24 * 3600_000);
  const late = world.clock.now();
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, { sentAt: late + 61_000 })), 'refused');
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, { sentAt: now })), 'refused');
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, { sentAt: late + 59_000 })), 'kept');
  const expired = delegateAnew(alice.master, late / 1000 - 7200, late / 1000 - 3600);
  assert.equal(await world.verdict(bob.aid, await world.note(expired, bob.aid)), 'refused');
  // It was in force when it was sent.
  assert.equal(await world.verdict(bob.aid, await world.note(expired, bob.aid, { sentAt: late - 4000_000 })), 'kept');
});

test('a replaced key cannot sign new notes, and older notes still arrive', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const before = world.clock.now();
  world.clock.jump(3600_000);
  const newest = unixSeconds(world.clock) - 600;
  world.newest.set(alice.aid, newest);
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid)), 'refused');
  // Clocks may differ by a minute.
  const [within, beyond] = [{ sentAt: newest * 1000 + 59_000 }, { sentAt: newest * 1000 + 61_000 }];
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, within)), 'kept');
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, beyond)), 'refused');
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, { sentAt: before })), 'kept');
});

test('a note that was queued while the key of its sender was replaced arrives, signed with the new key', async () => {
  const world = new World();
  const bob = world.host();
  const sentAt = world.clock.now();
  world.clock.jump(3600_000);
  const issuedAt = unixSeconds(world.clock) - 600;
  const alice = newIdentity(issuedAt);
  world.newest.set(alice.aid, issuedAt);
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid, { sentAt })), 'kept');
  const tomorrow = newIdentity(unixSeconds(world.clock) + 86_400);
  assert.equal(await world.verdict(bob.aid, await world.note(tomorrow, bob.aid, { sentAt })), 'refused');
});

test('a copy of a known note is removed after the note was read', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const letter = world.content(alice.aid, bob.aid);
  const record = world.record(await world.seal(alice, letter));
  const again = () => world.inbox.accept(bob.aid, [record]);
  assert.deepEqual(await again(), [{ verdict: 'kept', removal: null }]);
  assert.deepEqual(await again(), [{ verdict: 'known', removal: null }]);
  const { notes } = world.store.take(bob.aid, 1, 1e9, 1);
  assert.deepEqual(await again(), [{ verdict: 'known', removal: null }]);
  world.store.discard(notes.map(({ id }) => id));
  const removal = { digest: recordDigest(record.encoded), token: letter.nonce };
  assert.deepEqual(await again(), [{ verdict: 'known', removal }]);
});

test('a mailbox has limits for one sender and in total, and reading notes frees space', async () => {
  const world = new World();
  const bob = world.host();
  const from = async (sender: TestIdentity, count: number): Promise<string[]> => {
    const records = [];
    for (let i = 0; i < count; i++) records.push(await world.note(sender, bob.aid));
    return (await world.inbox.accept(bob.aid, records)).map(({ verdict }) => verdict);
  };
  const count = (verdicts: string[]): number => verdicts.filter((verdict) => verdict === 'kept').length;
  const senders = Array.from({ length: 4 }, () => newIdentity());
  let total = 0;
  for (const sender of senders) {
    const kept = count(await from(sender, MAX_SENDER_NOTES + 5));
    assert.equal(kept, Math.min(MAX_SENDER_NOTES, MAX_MAILBOX_NOTES - total));
    total += kept;
  }
  assert.equal(total, MAX_MAILBOX_NOTES);
  const { notes } = world.store.take(bob.aid, 10, 1e9, 1);
  assert.equal(count(await from(newIdentity(), 11)), 10);
  world.store.discard(notes.map((note) => note.id));
  assert.equal(world.store.load(bob.aid).count, MAX_MAILBOX_NOTES);
});

test('strangers leave room in a mailbox for senders that the owner knows', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const senders = Array.from({ length: 3 }, () => newIdentity());
  for (const { aid } of senders) world.strangers.add(aid);
  let kept = 0;
  for (const sender of senders) {
    const records = await Promise.all(Array.from({ length: MAX_SENDER_NOTES }, () => world.note(sender, bob.aid)));
    kept += (await world.inbox.accept(bob.aid, records)).filter(({ verdict }) => verdict === 'kept').length;
  }
  assert.equal(kept, MAX_STRANGERS_NOTES);
  assert.equal(await world.verdict(bob.aid, await world.note(alice, bob.aid)), 'kept');
});

test('a mailbox has exact byte limits for one sender and in total', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const empty = noteSize(new Uint8Array());
  /** Leaves room for `room` bytes below `limit` where `taken` are taken. */
  const fill = (sender: Aid, limit: number, taken: number, room: number): void => {
    const id = new Uint8Array(randomBytes(32));
    const body = new Uint8Array(limit - taken - room - empty);
    const note = { messageId: id, sender, msgType: 1, body, sentAt: 0, receivedAt: 0, digest: id, token: id };
    world.store.add({ aid: bob.aid, ...note }, 1);
  };
  const offer = async (sender: TestIdentity, bytes: number) =>
    world.verdict(bob.aid, await world.note(sender, bob.aid, { body: new Uint8Array(bytes) }));
  fill(alice.aid, MAX_SENDER_BYTES, 0, empty + 10);
  assert.equal(await offer(alice, 11), 'full');
  assert.equal(await offer(alice, 10), 'kept');
  fill(newIdentity().aid, MAX_MAILBOX_BYTES, world.store.load(bob.aid).bytes, empty + 10);
  assert.equal(await offer(newIdentity(), 11), 'full');
  assert.equal(await offer(newIdentity(), 10), 'kept');
});

test('a note for an agent that was deleted meanwhile is not stored', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const record = await world.note(alice, bob.aid);
  const accepting = world.verdict(bob.aid, record);
  world.agents.delete(bob.aid);
  assert.equal(await accepting, 'refused');
  assert.equal(world.db.one('SELECT count(*) AS n FROM notes_seen')?.['n'], 0);
});

test('a receiver that replaces the mailbox gets each note once, and its copies are removed', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  const taken: string[] = [];
  let answer: 'kept' | 'full' = 'full';
  world.inbox.claim(7, (recipient, note) => {
    taken.push(`${recipient} ${note.sender}`);
    return answer;
  });
  assert.throws(() => world.inbox.claim(7, () => 'kept'));
  const payload = await world.seal(alice, world.content(alice.aid, bob.aid, { msgType: 7 }));
  const accept = async () => (await world.inbox.accept(bob.aid, [world.record(payload)]))[0];
  assert.deepEqual(await accept(), { verdict: 'full', removal: null });
  answer = 'kept';
  const kept = await accept();
  assert.equal(kept?.verdict, 'kept');
  assert.ok(kept?.removal);
  const again = await accept();
  assert.equal(again?.verdict, 'known');
  assert.ok(again?.removal);
  assert.deepEqual(taken, [`${bob.aid} ${alice.aid}`, `${bob.aid} ${alice.aid}`]);
  assert.deepEqual(world.store.page(bob.aid, 0, 10, 1_000_000).notes, []);
  assert.deepEqual(world.events, []);
});

test('a note that its receiver drops leaves no row, and the sender is not notified', async () => {
  const world = new World();
  const [bob, eve] = [world.host(), newIdentity()];
  world.inbox.claim(7, () => 'dropped');
  const record = await world.note(eve, bob.aid, { msgType: 7 });
  for (let i = 0; i < 2; i++) assert.equal(await world.verdict(bob.aid, record), 'kept');
  assert.equal(world.db.one('SELECT count(*) AS n FROM notes_seen')?.['n'], 0);
});

test('a note whose receiver fails is refused and leaves nothing', async () => {
  const world = new World();
  const [bob, alice] = [world.host(), newIdentity()];
  world.inbox.claim(7, () => {
    throw new Error('broken');
  });
  const record = await world.note(alice, bob.aid, { msgType: 7 });
  assert.equal(await world.verdict(bob.aid, record), 'refused');
  assert.deepEqual(world.store.page(bob.aid, 0, 10, 1_000_000).notes, []);
});
