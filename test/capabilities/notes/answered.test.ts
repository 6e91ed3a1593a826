/** When a note counts as sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAD_START_MS } from '../../../src/capabilities/notes/note-sender.ts';
import type { SendResult } from '../../../src/capabilities/notes/types.ts';
import type { PutResult } from '../../../src/network/records/types.ts';
import { idle } from '../../support/idle.ts';
import { type MailNode, MailWorld } from '../../support/mail-world.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const copiesOf = ({ store }: MailNode): number => Number(store.one('SELECT count(*) AS n FROM note_copies')?.['n']);

/** A node whose network says nothing until it is told to. */
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

test('what the recipient has is sent as soon as it is on disk that its copies follow', async () => {
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
  assert.deepEqual([tell.length, copiesOf(a)], [0, 1], 'nobody was asked to keep it, and that is not forgotten');
});

test('a recipient that takes its time has the network asked as well', async () => {
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
  await world.until('the network is asked', () => tell.length === 1);
  tell[0]?.(8);
  rest.resolve({ replicas: 8, newer: null, refused: {} });
  await world.during(sending);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [false, 8]);
  await idle();
  assert.equal(copiesOf(a), 0, 'what the network has needs no copies');
});

test('a note that can be left to nobody to be copied is answered once two nodes keep it', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  await world.until('its copies are out', () => copiesOf(a) === 0);
  const { tell, rest } = silentNetwork(a);
  a.store.run('DROP TABLE note_copies');
  const sent: SendResult[] = [];
  const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello')).then((result) => sent.push(result));
  await world.until(
    'it is with bob, and the network is asked',
    () => b.waiting(bob.aid).length === 2 && tell.length === 1,
  );
  tell[0]?.(1);
  await world.clock.run(500);
  assert.equal(sent.length, 0);
  tell[0]?.(2);
  await world.during(sending);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [true, 2]);
  rest.resolve({ replicas: 8, newer: null, refused: {} });
});
