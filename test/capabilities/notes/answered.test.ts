/** When a note counts as sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GRACE_MS, HEAD_START_MS, type SendResult } from '../../../src/capabilities/notes/note-sender.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { PutResult } from '../../../src/network/records/types.ts';
import { idle } from '../../support/idle.ts';
import { type MailNode, MailWorld } from '../../support/mail-world.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const copiesOf = ({ store }: MailNode): number => Number(store.one('SELECT count(*) AS n FROM note_copies')?.['n']);

/** Makes the network of a node answer only on request of the test. */
function silentNetwork(node: MailNode): {
  tell: ((replicas: number) => void)[];
  rest: PromiseWithResolvers<PutResult>;
} {
  const tell: ((replicas: number) => void)[] = [];
  const rest = Promise.withResolvers<PutResult>();
  node.records.put = (_key, _record, options) => {
    if (options?.onKept !== undefined) tell.push(options.onKept);
    return rest.promise;
  };
  return { tell, rest };
}

test('a note counts as sent when the recipient has it and its copy is on disk', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell } = silentNetwork(a);
  const before = world.clock.now();
  const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('hello')));
  assert.ok(world.clock.now() - before < HEAD_START_MS);
  assert.deepEqual([sent.delivered, sent.replicas, b.waiting(bob.aid).length], [true, 0, 2]);
  assert.deepEqual([tell.length, copiesOf(a)], [0, 1], 'the network has no request, and the copy is on disk');
});

/** Sends a note to a recipient that does not answer. The network reports this number of replicas. */
async function toSilentRecipient(replicas: number) {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell, rest } = silentNetwork(a);
  world.links.part(a.links, b.links);
  const sent: SendResult[] = [];
  a.links.open = () => new Promise(() => {});
  const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello')).then((result) => sent.push(result));
  await world.until('the network has the request', () => tell.length === 1);
  tell[0]?.(replicas);
  rest.resolve({ replicas, newer: null, refused: {} });
  await idle();
  return { world, a, sending, sent };
}

test('if the recipient is slow and one node of the network stores the note, the recipient gets more time', async () => {
  const { world, a, sending, sent } = await toSilentRecipient(1);
  assert.equal(sent.length, 0, 'the recipient may still answer');
  const stored = world.clock.now();
  await world.during(sending);
  assert.ok(world.clock.now() - stored <= GRACE_MS);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [false, 1]);
  await idle();
  assert.equal(copiesOf(a), 0, 'the network has the note, so no copy is needed');
});

test('if the recipient is slow and several nodes store the note, the sender does not wait', async () => {
  const { a, sending, sent } = await toSilentRecipient(8);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [false, 8]);
  await sending;
  assert.equal(copiesOf(a), 0, 'the network has the note, so no copy is needed');
});

test('the network gets the note immediately if the node of the recipient is silent', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell, rest } = silentNetwork(a);
  let tellSilence = (): void => assert.fail('no link was opened');
  a.links.open = (_local, _remote, _purpose, options) => {
    tellSilence = () => options?.silence?.onSilence();
    return new Promise(() => {});
  };
  const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello'));
  await idle();
  assert.equal(tell.length, 0);
  tellSilence();
  await idle();
  assert.equal(tell.length, 1, 'no time has passed');
  rest.resolve({ replicas: 2, newer: null, refused: {} });
  assert.deepEqual([(await sending).delivered, (await sending).replicas], [false, 2]);
});

test('if the copy cannot be written to disk, a note counts as sent when two nodes store it', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell, rest } = silentNetwork(a);
  a.store.run('DROP TABLE note_copies');
  const sent: SendResult[] = [];
  const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello')).then((result) => sent.push(result));
  await world.until('bob and the network have it', () => b.waiting(bob.aid).length === 2 && tell.length === 1);
  tell[0]?.(1);
  await world.clock.run(500);
  assert.equal(sent.length, 0);
  tell[0]?.(2);
  await world.during(sending);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [true, 2]);
  rest.resolve({ replicas: 8, newer: null, refused: {} });
});

for (const replicas of [0, 8])
  test(`a copy is ${replicas === 0 ? 'kept' : 'dropped'} if the network stores the note at ${replicas} nodes after the answer`, async () => {
    const world = new MailWorld();
    const [a, b] = [await world.node('a'), await world.node('b')];
    const [alice, bob] = [await a.host(), await b.host()];
    await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
    await world.until('its copies are out', () => copiesOf(a) === 0);
    const { tell, rest } = silentNetwork(a);
    const open = a.links.open.bind(a.links);
    const slow = Promise.withResolvers<void>();
    a.links.open = async (...call) => {
      await slow.promise;
      return open(...call);
    };
    const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello'));
    await world.until('the network has the request', () => tell.length === 1);
    slow.resolve();
    const sent = await world.during(sending);
    assert.deepEqual([sent.delivered, sent.replicas, copiesOf(a)], [true, 0, 1]);
    rest.resolve({ replicas, newer: null, refused: {} });
    await idle();
    assert.equal(copiesOf(a), replicas === 0 ? 1 : 0);
  });

test('a note that the recipient refuses is not sent again, and one with an unclear result is queued', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  a.records.unreachable = true;
  const open = a.links.open.bind(a.links);
  let answer: number | null = 4;
  a.links.open = async (...call) => {
    if (answer === null) throw new SvcError('network_unavailable');
    const link = await open(...call);
    link.unshift(Uint8Array.of(answer));
    return link;
  };
  const post = (value: string) => world.during(a.notes.post(alice.aid, bob.aid, 1, text(value)));
  await assert.rejects(post('refused'), { code: 'not_acknowledged' });
  assert.deepEqual(a.notes.queued(alice.aid, 10).notes, []);
  answer = null;
  assert.equal((await post('unclear')).queued, true);
  assert.equal(a.notes.queued(alice.aid, 10).notes.length, 1);
});

test('a note for an unknown key is sealed again, and its first copy is not stored on the network', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell } = silentNetwork(a);
  const open = a.links.open.bind(a.links);
  let opened = 0;
  a.links.open = async (...call) => {
    const link = await open(...call);
    if (++opened === 1) link.unshift(Uint8Array.of(3));
    return link;
  };
  const sent = await world.during(a.notes.send(alice.aid, bob.aid, 1, text('hello')));
  // The note, the request for the keys, and the note again.
  assert.deepEqual([sent.delivered, opened, tell.length], [true, 3, 0]);
});
