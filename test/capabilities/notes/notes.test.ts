/** Notes between nodes, in calm weather. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KEY_RETENTION_S } from '../../../src/capabilities/notes/note-keys.ts';
import { toHex } from '../../../src/foundation/bytes.ts';
import type { ErrorCode } from '../../../src/foundation/errors.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { mailboxKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { MailWorld } from '../../support/mail-world.ts';

const DAY_MS = 24 * 3600_000;
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

function withCode(code: ErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code;
}

test('a note reaches an online agent immediately and once, and is stored on the network too', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  const sent = await world.during(a.notes.send(alice.aid, bob.aid, 3, text('hello')));
  assert.deepEqual({ delivered: sent.delivered, replicas: sent.replicas }, { delivered: true, replicas: 0 });
  const { notes } = b.notes.list(bob.aid, 10);
  assert.deepEqual(
    notes.map((note) => ({ ...note, body: new TextDecoder().decode(note.body) })),
    [{ messageId: sent.messageId, sender: alice.aid, msgType: 3, body: 'hello', sentAt: notes[0]?.sentAt }],
  );
  assert.deepEqual(b.events, [
    { aid: bob.aid, type: 'mailbox.received', data: { count: 1, message_ids: [sent.messageId] } },
  ]);
  assert.deepEqual([...b.notes.pending()], [[bob.aid, 1]]);
  const copies = () => world.hub.store.find(mailboxKey(bob.aid), { types: [RECORD.note] }, 10).length;
  assert.equal(copies(), 0, 'its copies follow');
  await world.until('its copies are there', () => copies() === 1);
  // The collector meets the copy on the network, and shows nothing twice.
  await world.clock.run(300_000);
  assert.deepEqual(b.waiting(bob.aid), [sent.messageId]);
  assert.equal(b.events.length, 1);
});

test('one note is deleted without other notes, and is not shown again', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  const ids: string[] = [];
  for (let i = 0; i < 3; i++)
    ids.push((await world.during(a.notes.send(alice.aid, bob.aid, 1, text(`${i}`)))).messageId);
  const [first = '', second = '', third = ''] = ids;
  b.notes.remove(bob.aid, second);
  assert.deepEqual(b.waiting(bob.aid), [first, third]);
  assert.equal(b.notes.pending().get(bob.aid), 2);
  for (const id of [second, 'no hex', 'ab'.repeat(32)])
    assert.throws(() => b.notes.remove(bob.aid, id), withCode('not_found'));
  assert.throws(() => b.notes.remove(alice.aid, first), withCode('not_found'));
  assert.deepEqual(b.waiting(bob.aid), [first, third]);
});

test('polling returns each note once, and removes its copies from the network', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  const ids = [];
  for (let i = 0; i < 5; i++)
    ids.push((await world.during(a.notes.send(alice.aid, bob.aid, 1, text(`${i}`)))).messageId);
  assert.deepEqual(b.waiting(bob.aid), ids);
  const taken = b.notes.take(bob.aid);
  assert.deepEqual(
    taken.notes.map((note) => note.messageId),
    ids,
  );
  assert.deepEqual(b.waiting(bob.aid), []);
  assert.deepEqual(b.poll(bob.aid), []);
  // The answer was lost: they wait again.
  taken.giveBack();
  assert.deepEqual(b.waiting(bob.aid), ids);
  assert.deepEqual(b.poll(bob.aid), ids);
  assert.equal(b.notes.pending().size, 0);
  await world.until(
    'the copies are removed',
    () => world.hub.store.find(mailboxKey(bob.aid), { types: [] }, 10).length === 0,
  );
  await world.clock.run(300_000);
  assert.deepEqual(b.waiting(bob.aid), []);
});

test('an offline recipient gets its notes later, even if the sender is offline then', async () => {
  const world = new MailWorld();
  const [a, c] = [await world.node('a'), await world.node('c')];
  let b = await world.node('b');
  const [alice, bob] = [await a.host(), await b.host()];
  await b.down();
  const ids = [];
  for (let i = 0; i < 3; i++) {
    const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text(`${i}`)));
    assert.equal(sent.delivered, false);
    assert.ok(sent.replicas > 0);
    ids.push(sent.messageId);
  }
  await a.down();
  await world.clock.run(3 * DAY_MS);
  b = await b.restart();
  const back = world.clock.now();
  await world.until('the notes are there', () => b.waiting(bob.aid).length === 3);
  assert.ok(world.clock.now() - back < 2000);
  assert.deepEqual(new Set(b.waiting(bob.aid)), new Set(ids));
  await c.down();
});

test('an identity on another machine gets its pending notes with its operational key alone', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b'), await world.node('keeper')];
  const [alice, bob] = [await a.host(), await b.host()];
  await b.down();
  const { messageId } = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('moved')));
  const elsewhere = await world.node('elsewhere');
  elsewhere.register(bob);
  await world.until('the note is there', () => elsewhere.waiting(bob.aid).length === 1);
  assert.deepEqual(elsewhere.waiting(bob.aid), [messageId]);
});

test('the private keys of a replaced operational key are deleted when no note can need them', async () => {
  const world = new MailWorld();
  const node = await world.node('a');
  const agent = await node.host();
  const keys = () => node.notes.exportSecrets(agent.aid).length;
  const own = keys();
  const rotated = delegateAnew(agent.master, agent.delegation.issuedAt + 10);
  world.clock.jump(10_000);
  node.register(rotated, 'rotated');
  await node.publish(rotated);
  const replaced = node.notes.exportSecrets(agent.aid)[own]?.privateKeyHex ?? '';
  const isKept = () => node.notes.exportSecrets(agent.aid).some((key) => key.privateKeyHex === replaced);
  world.clock.jump(KEY_RETENTION_S * 1000);
  await node.publish(rotated);
  assert.ok(isKept());
  world.clock.jump(1000);
  await node.publish(rotated);
  assert.deepEqual([isKept(), keys()], [false, own]);
});

test('pending notes stay readable after a new operational key, and after a move with an export', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  b.records.setReachability({ ready: false });
  b.links.agents.delete(bob.aid);
  const first = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('before')));
  const rotated = delegateAnew(bob.master, bob.delegation.issuedAt + 10);
  world.clock.jump(10_000);
  b.register(rotated, 'rotated');
  await b.publish(rotated);
  b.links.agents.delete(bob.aid);
  // The sender learns the new key from the network once its cached one is old.
  world.clock.jump(11 * 60_000);
  const second = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('after')));
  const secrets = b.notes.exportSecrets(bob.aid);
  assert.ok(secrets.length >= 1);

  const bare = await world.node('bare');
  bare.register(rotated);
  await world.until('the note for the new key', () => bare.waiting(bob.aid).length === 1);
  assert.deepEqual(bare.waiting(bob.aid), [second.messageId]);
  bare.notes.importSecrets(bob.aid, secrets);
  await world.until('the note for the old key', () => bare.waiting(bob.aid).length === 2);
  assert.throws(() => bare.notes.importSecrets(bob.aid, [{ privateKeyHex: 'ab', createdAt: 0 }]), withCode('bad_key'));

  b.records.setReachability({ ready: true });
  await world.until('both, on the old machine', () => b.waiting(bob.aid).length === 2);
  assert.deepEqual(new Set(b.waiting(bob.aid)), new Set([first.messageId, second.messageId]));
});

test('keys change every month, and the previous key still opens notes', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  b.links.agents.delete(bob.aid);
  a.records.setReachability({ ready: false });
  const keys = new Set<string>();
  for (let day = 0; day < 70; day += 5) {
    b.records.setReachability({ ready: false });
    // The key that the sender knows is up to ten days old.
    if (day % 10 === 0) await b.publish(bob);
    b.links.agents.delete(bob.aid);
    const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text(`day ${day}`)));
    const kept = await b.records.list(mailboxKey(bob.aid), [RECORD.note]);
    for (const record of kept) keys.add(toHex(record.payload.subarray(49, 57)));
    await world.clock.run(5 * DAY_MS);
    b.records.setReachability({ ready: true });
    await world.until('the note of that day', () => b.waiting(bob.aid).includes(sent.messageId));
    b.poll(bob.aid);
  }
  assert.equal(keys.size, 3);
});

test('agents of one daemon write to each other, with or without a network', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const [alice, bob] = [await a.host(), await a.host()];
  a.records.unreachable = true;
  const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('next door')));
  assert.deepEqual({ delivered: sent.delivered, replicas: sent.replicas }, { delivered: true, replicas: 0 });
  const own = await world.during(a.notes.send(alice.aid, alice.aid, 1, text('to myself')));
  assert.deepEqual(a.waiting(alice.aid), [own.messageId]);
  assert.deepEqual(a.waiting(bob.aid), [sent.messageId]);
});

test('a note that no node stored is an error, and the next attempt is the same note', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  // The note arrives, and the answer does not.
  a.records.unreachable = true;
  const drop = b.links.accept.bind(b.links);
  const served: string[] = [];
  drop('note', (link) => {
    served.push('lost');
    link.destroy();
  });
  await assert.rejects(world.during(a.notes.send(alice.aid, bob.aid, 1, text('again'))), withCode('not_acknowledged'));
  assert.deepEqual(served, ['lost']);
  a.records.unreachable = false;
  const again = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('again')));
  // Sent on purpose a second time, it is another note.
  const other = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('again')));
  assert.notEqual(again.messageId, other.messageId);
  const both = await world.during(
    Promise.all([1, 2].map(async () => a.notes.send(alice.aid, bob.aid, 1, text('at once')))),
  );
  assert.equal(new Set(both.map((sent) => sent.messageId)).size, 1, 'a request that is repeated before its answer');
  b.notes.agentChanged({ aid: bob.aid, kind: 'registered' });
  await world.until('all are there', () => b.waiting(bob.aid).length === 4);
});

test('the mailbox of an agent is fetched a second after it was registered, unless its keys are new', async () => {
  const world = new MailWorld();
  const [, b] = [await world.node('a'), await world.node('b')];
  const [known, made] = [newIdentity().aid, newIdentity().aid];
  const looked: string[] = [];
  const list = b.records.list.bind(b.records);
  b.records.list = (key, ...rest) => {
    looked.push(toHex(key));
    return list(key, ...rest);
  };
  b.made.add(made);
  for (const aid of [made, known]) b.notes.agentChanged({ aid, kind: 'registered' });
  await world.clock.run(999);
  assert.deepEqual(looked, []);
  await world.clock.run(1001);
  assert.deepEqual(looked, [toHex(mailboxKey(known))]);
});

test('a failed attempt keeps its id over a restart of the sender, for an hour', async () => {
  const world = new MailWorld();
  let a = await world.node('a');
  const b = await world.node('b');
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('x')));
  const copies: Uint8Array[] = [];
  const put = a.records.put.bind(a.records);
  a.records.put = async (key, record) => {
    copies.push(record.encoded);
    await put(key, record);
    // It was kept, and the answer was lost.
    return { replicas: 0, newer: null, refused: {} };
  };
  b.links.agents.delete(bob.aid);
  await assert.rejects(world.during(a.notes.send(alice.aid, bob.aid, 1, text('y'))), withCode('not_acknowledged'));
  a = await a.restart();
  const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('y')));
  b.notes.agentChanged({ aid: bob.aid, kind: 'registered' });
  await world.until('it is there', () => b.waiting(bob.aid).includes(sent.messageId));
  await world.clock.run(120_000);
  assert.equal(copies.length, 1);
  assert.equal(b.waiting(bob.aid).length, 2);
});

test('a note above a limit is refused with the limit', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const alice = await a.host();
  const { aid } = alice;
  const other = newIdentity().aid;
  const large = new Uint8Array(32 * 1024);
  assert.equal((await world.during(a.notes.send(aid, aid, 0, large))).delivered, true);
  await assert.rejects(world.during(a.notes.send(aid, aid, 0, new Uint8Array(32 * 1024 + 1))), withCode('too_large'));
  await assert.rejects(world.during(a.notes.send(aid, aid, -1, large)), withCode('invalid_request'));
  await assert.rejects(world.during(a.notes.send(aid, aid, 2 ** 32, large)), withCode('invalid_request'));
  await assert.rejects(world.during(a.notes.send(other, aid, 1, large)), withCode('not_found'));
  await assert.rejects(world.during(a.notes.send(aid, other, 1, large)), withCode('resolve_failed'));
  assert.throws(() => a.notes.list(other, 10), withCode('not_found'));
  assert.throws(() => a.notes.list(aid, 10, 'x'), withCode('invalid_request'));
  assert.throws(() => a.notes.take(other), withCode('not_found'));
});

test('an agent has a limited rate of notes, and the error contains the time to retry', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const { aid } = await a.host();
  const failures: unknown[] = [];
  const all = Array.from({ length: 310 }, async () =>
    a.notes.send(aid, aid, 1, new Uint8Array(1)).catch((error: unknown) => failures.push(error)),
  );
  await world.during(Promise.all(all));
  assert.equal(failures.length, 10);
  assert.ok(failures.every(withCode('rate_limited')));
});

test('deleting an agent deletes its notes and its keys', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const [alice, bob] = [await a.host(), await a.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('x')));
  for (const { aid } of [alice, bob]) a.notes.beforeRotation(aid);
  assert.equal(a.vault.secrets.size, 2);
  a.remove(bob.aid);
  assert.equal(a.vault.secrets.size, 1);
  assert.equal(a.notes.pending().size, 0);
  for (const table of ['notes', 'notes_seen'])
    assert.equal(a.store.one(`SELECT count(*) AS n FROM ${table}`)?.['n'], 0, table);
});

test('a handler gets each note of its type, in the transaction that stores the note', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const [alice, bob] = [await a.host(), await a.host()];
  const reported: string[] = [];
  a.store.run('CREATE TABLE told (id TEXT)');
  a.notes.onNote(0x10, (recipient, note) => {
    assert.equal(recipient, bob.aid);
    assert.equal(note.sender, alice.aid);
    a.store.run('INSERT INTO told VALUES (?)', note.messageId);
    if (note.body[0] === 1) throw new Error('a fault of the handler');
    reported.push(note.messageId);
  });
  assert.throws(() => a.notes.onNote(0x10, () => {}));
  const good = await world.during(a.notes.send(alice.aid, bob.aid, 0x10, Uint8Array.of(0)));
  const faulty = await world.during(a.notes.send(alice.aid, bob.aid, 0x10, Uint8Array.of(1)));
  await world.during(a.notes.send(alice.aid, bob.aid, 1, Uint8Array.of(0)));
  assert.deepEqual(reported, [good.messageId]);
  assert.deepEqual(
    a.store.all('SELECT id FROM told').map((row) => row['id']),
    [good.messageId],
  );
  assert.ok(a.waiting(bob.aid).includes(faulty.messageId));
});

test('a stopped node leaves no timer behind', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const alice = await a.host();
  await world.during(a.notes.send(alice.aid, alice.aid, 1, text('x')));
  await a.down();
  await world.clock.run(30_000);
  assert.equal(world.clock.timers, 0);
});

test('pending notes are counted after a restart too', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, new Uint8Array(3)));
  assert.deepEqual([...b.notes.pending()], [[bob.aid, 1]]);
  const back = await b.restart();
  assert.deepEqual([...back.notes.pending()], [[bob.aid, 1]]);
});

test('the encryption key of an agent is published once a day', async () => {
  const world = new MailWorld();
  const a = await world.node('a');
  const put: number[] = [];
  // Its key changes in the second week. On that day it is published twice.
  const alice = delegateAnew(KeyPair.fromSeed(new Uint8Array(32).fill(2)));
  const store = a.records.put.bind(a.records);
  a.records.put = (key, record, options) => {
    if (record.type === RECORD.encryptionKeys) put.push(world.clock.now());
    return store(key, record, options);
  };
  await a.host(alice);
  const first = world.clock.now();
  world.clock.jump(24 * 3600_000 - 1);
  await a.publish(alice);
  assert.deepEqual(put, [first]);
  world.clock.jump(1);
  await a.publish(alice);
  assert.deepEqual(put, [first, first + 24 * 3600_000]);
});
