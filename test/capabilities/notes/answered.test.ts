/** When a note counts as sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SendResult } from '../../../src/capabilities/notes/types.ts';
import type { PutResult } from '../../../src/network/dht/types.ts';
import { idle } from '../../support/idle.ts';
import { MailWorld } from '../../support/mail-world.ts';

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

test('what the recipient and some of the network have is sent: nobody waits for the others', async () => {
  const world = new MailWorld();
  const [a, b] = [await world.node('a'), await world.node('b')];
  const [alice, bob] = [await a.host(), await b.host()];
  await world.during(a.notes.send(alice.aid, bob.aid, 1, text('first contact')));
  const tell: ((replicas: number) => void)[] = [];
  const rest = Promise.withResolvers<PutResult>();
  a.records.put = (_key, _record, options) => {
    if (options?.onKept !== undefined) tell.push(options.onKept);
    return rest.promise;
  };
  const sent: SendResult[] = [];
  const sending = a.notes.send(alice.aid, bob.aid, 1, text('hello')).then((result) => sent.push(result));
  await world.until('it is with bob', () => b.waiting(bob.aid).length === 2);
  await world.clock.run(500);
  assert.equal(sent.length, 0, 'it is with nobody else');
  tell[0]?.(1);
  await world.clock.run(500);
  assert.equal(sent.length, 0);
  const before = world.clock.now();
  tell[0]?.(2);
  await world.during(sending);
  assert.equal(world.clock.now(), before);
  assert.deepEqual([sent[0]?.delivered, sent[0]?.replicas], [true, 2]);
  rest.resolve({ replicas: 8, newer: null, refused: {} });
  await idle();
  assert.equal(sent[0]?.replicas, 2);
});
