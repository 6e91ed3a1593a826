/** Notes that no other node keeps yet: queued on disk, and sent again until one does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QUEUED_LIFE_MS } from '../../../src/capabilities/notes/note-sender.ts';
import { MAX_QUEUED_NOTES } from '../../../src/foundation/domain/notes.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type MailNode, MailWorld } from '../../support/mail-world.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const NOT_SENT = { replicas: 0, delivered: false, queued: true };

/** A sender that knows the key of the recipient, and can be cut off from it and from the record network. */
async function setUp() {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [(await a.host()).aid, (await b.host()).aid];
  const post = async (body: string, heard = true) => {
    const { settle, ...sent } = await world.during(a.notes.post(alice, bob, 3, text(body)));
    settle(heard);
    return sent;
  };
  await post('before');
  const cut = (): void => {
    world.links.part(a.links, b.links);
    a.records.unreachable = true;
  };
  const heal = (): void => {
    world.links.heal();
    a.records.unreachable = false;
  };
  return { world, a, b, alice, bob, post, cut, heal };
}

const queuedIds = (node: MailNode, aid: Aid): string[] =>
  node.notes.queued(aid, 500).notes.map(({ messageId }) => Buffer.from(messageId).toString('hex'));
const eventsOf = ({ events }: MailNode, kind: string) =>
  events.filter(({ type }) => type === kind).map(({ data }) => data);

test('a note during which this machine stalls is not given up', async () => {
  const { world, a, b, alice, bob } = await setUp();
  world.links.part(a.links, b.links);
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const put = a.records.put.bind(a.records);
  a.records.put = async (...record) => {
    begun.resolve();
    await answered;
    return put(...record);
  };
  const sent = a.notes.send(alice, bob, 3, text('late'));
  await world.during(begun.promise);
  world.clock.jump(20_000);
  await world.clock.run(500);
  answer();
  assert.ok((await world.during(sent)).replicas > 0);
});

test('a note that only this node has is queued, survives a crash, and is sent when another node answers', async () => {
  const { world, a, b, alice, bob, post, cut, heal } = await setUp();
  cut();
  const { messageId, ...sent } = await post('queued');
  assert.deepEqual(sent, NOT_SENT);
  assert.deepEqual(queuedIds(a, alice), [messageId]);
  const again = await a.restart();
  cut();
  again.records.unreachable = true;
  await world.clock.run(60_000);
  assert.deepEqual(queuedIds(again, alice), [messageId]);
  heal();
  again.records.unreachable = false;
  await world.until('the note arrives', () => b.waiting(bob).includes(messageId), 600_000);
  await world.until('the queue is empty', () => queuedIds(again, alice).length === 0, 60_000);
  const [event, ...more] = eventsOf(again, 'mailbox.sent');
  assert.deepEqual({ ...event, replicas: 0 }, { message_id: messageId, recipient: bob, replicas: 0, delivered: true });
  assert.deepEqual(more, []);
  await world.clock.run(300_000);
  assert.equal(b.waiting(bob).filter((id) => id === messageId).length, 1);
});

test('without another node a note is queued even if the key of its recipient is not known', async () => {
  const world = new MailWorld();
  const b = await world.node('b');
  const bob = (await b.host()).aid;
  await b.down();
  const a = await world.node('a');
  const alice = (await a.host()).aid;
  a.records.unreachable = true;
  const { messageId, settle, ...sent } = await world.during(a.notes.post(alice, bob, 3, text('hello')));
  settle(true);
  assert.deepEqual(sent, NOT_SENT);
  a.records.unreachable = false;
  const back = await b.restart();
  const restarted = world.clock.now();
  await world.until('the note arrives', () => back.waiting(bob).includes(messageId));
  assert.ok(world.clock.now() - restarted < 5000, 'immediately when a node appears');
});

test('a queued note expires after the lifetime of notes on the network, and its sender gets an event', async () => {
  const { world, a, alice, bob, post, cut } = await setUp();
  cut();
  const { messageId } = await post('never arrives');
  const [note] = a.notes.queued(alice, 10).notes;
  assert.equal((note?.until ?? 0) - (note?.sentAt ?? 0), QUEUED_LIFE_MS);
  world.clock.jump(QUEUED_LIFE_MS);
  await world.until('it is deleted', () => queuedIds(a, alice).length === 0);
  assert.deepEqual(eventsOf(a, 'mailbox.expired'), [{ message_id: messageId, recipient: bob }]);
  assert.deepEqual(eventsOf(a, 'mailbox.sent'), []);
});

test('a client without an answer sends the same note again, and it is queued once', async () => {
  const { a, alice, post, cut } = await setUp();
  cut();
  const { messageId } = await post('unanswered', false);
  assert.equal((await post('unanswered')).messageId, messageId);
  assert.deepEqual(queuedIds(a, alice), [messageId]);
  assert.notEqual((await post('unanswered')).messageId, messageId);
  assert.equal(queuedIds(a, alice).length, 2);
});

test('a client that gives up and sends the same note again joins the attempt under way', async () => {
  const { world, a, b, alice, bob, cut } = await setUp();
  const send = () => a.notes.post(alice, bob, 3, text('slow'));
  cut();
  const requests = world.during(Promise.all([send(), send(), send()]));
  const [first, second, third] = await requests;
  assert.deepEqual([second.messageId, third.messageId], [first.messageId, first.messageId]);
  assert.deepEqual(queuedIds(a, alice), [first.messageId]);
  // Two clients have disconnected. While the answer to the third one is under way, it is still the same note.
  first.settle(false);
  second.settle(false);
  const fourth = await world.during(send());
  assert.equal(fourth.messageId, first.messageId);
  third.settle(true);
  const next = await world.during(send());
  assert.notEqual(next.messageId, first.messageId, 'after an answer, it is sent on purpose');
  fourth.settle(true);
  assert.equal((await world.during(send())).messageId, next.messageId, 'an old answer ends nothing');
  assert.equal(b.waiting(bob).includes(first.messageId), false);
});

test('queued notes are listed in pages, canceled, and deleted with their agent', async () => {
  const { a, alice, post, cut } = await setUp();
  cut();
  const ids = [];
  for (const body of ['1', '2', '3']) ids.push((await post(body)).messageId);
  const first = a.notes.queued(alice, 2);
  assert.equal(first.notes.length, 2);
  const rest = a.notes.queued(alice, 2, first.nextCursor ?? '');
  assert.deepEqual([rest.notes.length, rest.nextCursor], [1, null]);
  assert.throws(() => a.notes.queued(alice, 2, 'x'), { code: 'invalid_request' });
  a.notes.cancelQueued(alice, ids[1] ?? '');
  assert.deepEqual(queuedIds(a, alice), [ids[0], ids[2]]);
  for (const id of [ids[1] ?? '', 'no hex'])
    assert.throws(() => a.notes.cancelQueued(alice, id), { code: 'not_found' });
  a.remove(alice);
  assert.equal(Number(a.store.one('SELECT count(*) AS n FROM note_outbox')?.['n']), 0);
});

test('a note that does not fit the queue is refused, and capabilities that retry do not queue', async () => {
  const { world, a, alice, bob, post, cut } = await setUp();
  cut();
  await assert.rejects(world.during(a.notes.send(alice, bob, 3, text('by a capability'))), {
    code: 'not_acknowledged',
  });
  assert.deepEqual(queuedIds(a, alice), []);
  await post('first');
  a.store.run(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
     INSERT INTO note_outbox (aid, message_id, recipient, msg_type, body, nonce, sent_at, until, due_at)
     SELECT aid, CAST(i AS BLOB), recipient, msg_type, body, nonce, sent_at, until, until FROM note_outbox, n`,
    MAX_QUEUED_NOTES - 1,
  );
  await assert.rejects(post('one too many'), { code: 'quota_exceeded' });
});

test('a note is neither sent nor queued while the clock is ahead, and a queued one waits until it is right', async () => {
  const { world, a, b, alice, bob, post, cut, heal } = await setUp();
  const before = b.waiting(bob).length;
  a.aheadMs = 3600_000;
  await assert.rejects(post('from the future'), { code: 'clock_wrong', details: { offset_s: -3600 } });
  assert.deepEqual(queuedIds(a, alice), []);
  a.aheadMs = 0;
  cut();
  const { messageId } = await post('queued');
  a.aheadMs = 3600_000;
  heal();
  await world.clock.run(60_000);
  assert.equal(b.waiting(bob).length, before);
  a.aheadMs = 0;
  await world.until('the note arrives', () => b.waiting(bob).includes(messageId), 600_000);
});

test('a note that is being sent when the daemon stops is queued before the store closes', async () => {
  const { world, a, alice, bob } = await setUp();
  // Neither the recipient nor the network answers.
  a.links.open = () => new Promise(() => {});
  a.records.put = () => new Promise(() => {});
  const posting = a.notes.post(alice, bob, 3, text('on its way'));
  const forCapability = assert.rejects(a.notes.send(alice, bob, 3, text('sent again by its capability')));
  await world.during(a.notes.stop());
  assert.equal(a.notes.queued(alice, 10).notes.length, 1);
  a.store.close();
  const { replicas, delivered, queued, settle } = await posting;
  assert.deepEqual({ replicas, delivered, queued }, NOT_SENT);
  settle(true);
  await forCapability;
  await assert.rejects(a.notes.post(alice, bob, 3, text('too late')), { code: 'cancelled' });
  await world.clock.run(60_000);
});
