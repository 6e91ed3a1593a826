/** Entries of a chat are sent after they are on disk, also if a flush fails. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type ChatNode, ChatWorld } from '../../support/chat-world.ts';
import { CALM } from '../../support/flaky-links.ts';
import { newIdentity } from '../../support/identities.ts';
import { slowDisk } from '../../support/slow-disk.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const EIO: Error = Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'fdatasync' });

/** Two friends. The flushes of the first one complete when the test lets them. */
async function friends(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const disk = slowDisk(t);
  const store = Store.open(join(temporaryDirectory(t), 'a.db'), MIGRATIONS);
  store.reserveJournal();
  disk.complete();
  const world = new ChatWorld();
  const a = await world.node('a', store);
  const b = await world.node('b');
  const [alice, bob] = [a.host(newIdentity()).aid, b.host(newIdentity()).aid];
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  b.chat.accept(bob, alice);
  await world.until('the answer', () => a.state(alice, bob) === 'friends');
  t.after(async () => {
    await a.down();
    await b.down();
    store.close();
  });
  const heard = (): (string | null)[] => b.heard(bob, alice);
  const say = (node: ChatNode, text: string): Promise<unknown> =>
    node === a ? a.say(alice, bob, text) : b.say(bob, alice, text);
  const statuses = (): string[] => a.log(alice, bob).map(({ status }) => status);
  return { world, disk, a, b, say, heard, statuses };
}

test('an entry is not sent before it is on disk, also if other work wakes the conversation', async (t) => {
  const { world, disk, a, b, say, heard } = await friends(t);
  const sent = say(a, 'one');
  await world.during(say(b, 'other'));
  a.setReady(false);
  a.setReady(true);
  await world.clock.run(30_000);
  assert.deepEqual(heard(), []);
  disk.complete();
  await world.during(sent);
  assert.deepEqual(heard(), ['one']);
});

test('an entry whose flush failed is sent after a repair, without another message', async (t) => {
  const { world, disk, a, say, heard } = await friends(t);
  const [one, two] = [say(a, 'one'), say(a, 'two')];
  await world.until('a flush', () => disk.pending.length === 1);
  disk.complete(EIO);
  await assert.rejects(one, { code: 'not_writable' });
  await world.clock.run(600_000);
  assert.deepEqual(heard(), []);
  // The second one waits for the next flush. Nothing else repairs the database before.
  t.mock.timers.tick(1000);
  await world.until('both', () => heard().length === 2);
  assert.deepEqual(heard(), ['one', 'two']);
  disk.complete();
  await world.during(two);
  assert.deepEqual(heard(), ['one', 'two']);
});

test('the next message repairs the database, and follows a commit with a failed flush', async (t) => {
  const { world, disk, a, say, heard } = await friends(t);
  const one = say(a, 'one');
  await world.until('a flush', () => disk.pending.length === 1);
  disk.complete(EIO);
  await assert.rejects(one, { code: 'not_writable' });
  const two = say(a, 'two');
  await world.until('another flush', () => disk.pending.length === 1);
  disk.complete();
  await world.during(two);
  await world.until('both', () => heard().length === 2);
  assert.deepEqual(heard(), ['one', 'two']);
});

test('an entry that a repair has sent is not sent again after its flush, which would count as another entry', async (t) => {
  const { world, disk, a, say, heard, statuses } = await friends(t);
  world.links.trouble = { ...CALM, delayMs: 40 };
  const zero = say(a, 'zero');
  await world.until('a flush', () => disk.pending.length === 1);
  disk.complete();
  await world.until('zero', () => heard().length === 1);
  assert.deepEqual(statuses(), ['queued'], 'its receipt is on its way');
  const one = say(a, 'one');
  await turn();
  disk.complete(EIO);
  await assert.rejects(one, { code: 'not_writable' });
  const two = say(a, 'two');
  await turn();
  await world.until('the receipt', () => statuses()[0] === 'sent');
  assert.deepEqual(statuses(), ['sent', 'queued', 'queued']);
  disk.complete();
  await turn();
  const three = say(a, 'three');
  await world.until('both', () => heard().length === 3);
  await world.clock.run(1000);
  assert.deepEqual(heard(), ['zero', 'one', 'two']);
  assert.deepEqual(statuses(), ['sent', 'sent', 'sent', 'queued']);
  disk.complete();
  await world.during(Promise.all([zero, two, three]));
  assert.deepEqual(heard(), ['zero', 'one', 'two', 'three']);
});
