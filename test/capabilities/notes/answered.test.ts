/** When a note counts as sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAD_START_MS, type SendResult } from '../../../src/capabilities/notes/note-sender.ts';
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

test('if the recipient is slow, the note is sent to the network too', async () => {
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
  tell[0]?.(8);
  rest.resolve({ replicas: 8, newer: null, refused: {} });
  await world.during(sending);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [false, 8]);
  await idle();
  assert.equal(copiesOf(a), 0, 'the network has the note, so no copy is needed');
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
