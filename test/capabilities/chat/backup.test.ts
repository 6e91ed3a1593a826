/** A node is restored from an old backup: lost entries of its conversations are sent again, without duplicates. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { ChatWorld } from '../../support/chat-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

function backupOf(t: TestContext, store: Store): Store {
  const file = join(temporaryDirectory(t), 'backup.db');
  store.run('VACUUM INTO ?', file);
  return Store.open(file, MIGRATIONS, 'normal');
}

test('entries that a friend sent after the backup are sent again with its next entry', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  for (const text of ['a1', 'a2']) await world.during(a.say(alice, bob, text));
  await world.during(b.say(bob, alice, 'b1'));
  const backup = backupOf(t, b.store);
  for (const text of ['a3', 'a4', 'a5']) await world.during(a.say(alice, bob, text));
  await world.during(b.say(bob, alice, 'b2'));
  const restored = await b.restart(backup);
  assert.deepEqual(restored.heard(bob, alice), ['a1', 'a2']);
  await world.during(a.say(alice, bob, 'a6'));
  await world.until('all entries', () => restored.heard(bob, alice).length === 6);
  assert.deepEqual(restored.heard(bob, alice), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']);
  await world.until('all arrived', () => a.pairs.pair(alice, bob)?.queued === 0);
  // The restored node's new entries have new IDs: they arrive, and earlier ones remain.
  await world.during(restored.say(bob, alice, 'b3'));
  await world.until('the other direction', () => a.heard(alice, bob).includes('b3'));
  assert.deepEqual(a.heard(alice, bob), ['b1', 'b2', 'b3']);
  assert.deepEqual(
    a
      .log(alice, bob)
      .filter((entry) => !entry.incoming)
      .map(({ text, status }) => [text, status]),
    ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map((text) => [text, 'sent']),
  );
});

test('a reader with a cursor ahead of the restored log continues at its end and misses nothing', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.say(alice, bob, 'a1'));
  const backup = backupOf(t, b.store);
  for (const text of ['a2', 'a3']) await world.during(a.say(alice, bob, text));
  const { scannedTo } = b.chat.read(bob, alice, 0, 200);
  const restored = await b.restart(backup);
  const again = restored.chat.read(bob, alice, scannedTo, 200);
  assert.deepEqual([again.entries, again.scannedTo, again.hasMore], [[], 1, false]);
  await world.during(a.say(alice, bob, 'a4'));
  await world.until('all entries', () => restored.heard(bob, alice).length === 4);
  const texts = restored.chat.read(bob, alice, again.scannedTo, 200).entries.map(({ text }) => text);
  assert.deepEqual(texts, ['a2', 'a3', 'a4']);
});

test('entries queued in the backup and delivered later are not shown twice', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  a.links.agents.delete(alice);
  b.links.crash();
  await world.during(b.say(bob, alice, 'waits'));
  const backup = backupOf(t, b.store);
  const up = await b.restart();
  a.links.agents.add(alice);
  await world.until('it arrives', () => a.heard(alice, bob).length === 1);
  const restored = await up.restart(backup);
  await world.during(restored.say(bob, alice, 'next'));
  await world.until('the next', () => a.heard(alice, bob).includes('next'));
  assert.deepEqual(a.heard(alice, bob), ['waits', 'next']);
});

test('entries sent before a power loss remain at the friend, and later entries arrive too', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.say(alice, bob, 'a1'));
  const onDisk = backupOf(t, a.store);
  for (const text of ['a2', 'a3']) await world.during(a.say(alice, bob, text));
  assert.deepEqual(b.heard(bob, alice), ['a1', 'a2', 'a3']);
  const back = await a.restart(onDisk);
  // They follow an entry that the friend has, although it has later ones.
  for (const text of ['a4', 'a5', 'a6']) await world.during(back.say(alice, bob, text));
  await world.until('all arrived', () => back.pairs.pair(alice, bob)?.queued === 0);
  assert.deepEqual(b.heard(bob, alice), ['a1', 'a2', 'a3', 'a4', 'a5', 'a6']);
  await world.during(b.say(bob, alice, 'b1'));
  assert.deepEqual(back.heard(alice, bob), ['b1']);
});

test('a side restored from an older backup recovers: no new entry is treated as a duplicate', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  for (let i = 0; i < 3; i++) await world.during(a.say(alice, bob, `before ${i}`));
  const backup = backupOf(t, a.store);
  for (let i = 0; i < 3; i++) await world.during(a.say(alice, bob, `lost ${i}`));
  const again = await a.restart(backup);
  const backupOfBob = backupOf(t, b.store);
  for (let i = 0; i < 2; i++) await world.during(again.say(alice, bob, `after ${i}`));
  await world.until('the new entries', () => b.heard(bob, alice).includes('after 1'));
  // Now Bob loses the last entries.
  const reborn = await b.restart(backupOfBob);
  await world.during(again.say(alice, bob, 'the latest'));
  await world.until('the latest', () => reborn.heard(bob, alice).includes('the latest'));
  assert.deepEqual(reborn.heard(bob, alice).slice(-3), ['after 0', 'after 1', 'the latest']);
  assert.equal(again.state(alice, bob), 'friends');
});

test('no entry is lost if first one side and then the other side restores a backup', async (t) => {
  // The numbers of entries in each backup vary, because positions in both logs can agree although contents do not.
  for (const before of [0, 1, 2])
    for (const [lost, kept, missed] of [
      [1, 0, 1],
      [1, 0, 2],
      [1, 1, 1],
      [2, 0, 2],
      [2, 1, 3],
      [3, 2, 1],
    ] as const) {
      const world = new ChatWorld();
      const [a, alice, b, bob] = await world.friends();
      const say = async (node: typeof a, count: number, name: string): Promise<void> => {
        for (let i = 0; i < count; i++) await world.during(node.say(alice, bob, `${name} ${i}`));
      };
      await say(a, before, 'before');
      const backupOfAlice = backupOf(t, a.store);
      await say(a, lost, 'lost');
      await world.until('all', () => b.heard(bob, alice).length === before + lost);
      const again = await a.restart(backupOfAlice);
      await say(again, kept, 'kept');
      await world.until('all kept', () => b.heard(bob, alice).length === before + lost + kept);
      const backupOfBob = backupOf(t, b.store);
      await say(again, missed, 'missed');
      await world.until('all missed', () => b.heard(bob, alice).length === before + lost + kept + missed);
      const reborn = await b.restart(backupOfBob);
      await say(again, 1, 'last');
      await world.until('the last entry', () => reborn.heard(bob, alice).includes('last 0'));
      const sent = again.log(alice, bob).map(({ text }) => text);
      const received = reborn.heard(bob, alice);
      assert.deepEqual(
        received.filter((text) => sent.includes(text)),
        sent,
        JSON.stringify({ before, lost, kept, missed, received }),
      );
      assert.equal(new Set(received).size, received.length, 'no duplicates');
    }
});

test('entries that a restored node has lost return without a new entry', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.say(alice, bob, 'a1'));
  const backup = backupOf(t, b.store);
  for (const text of ['a2', 'a3']) await world.during(a.say(alice, bob, text));
  // The restored node contacts its friends when its network is ready.
  const restored = await b.restart(backup);
  await world.until('all entries', () => restored.heard(bob, alice).length === 3);
  assert.deepEqual(restored.heard(bob, alice), ['a1', 'a2', 'a3']);
});

test('a node restored to its open request becomes a friend again and receives all entries', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  b.chat.request(bob, alice, '');
  await world.until('the request', () => a.state(alice, bob) === 'in_pending');
  await world.until('the request is heard', () => b.pairs.pair(bob, alice)?.control === null);
  const backup = backupOf(t, b.store);
  a.chat.accept(alice, bob);
  await world.until('friends', () => b.state(bob, alice) === 'friends');
  for (const text of ['a1', 'a2']) await world.during(a.say(alice, bob, text));
  const restored = await b.restart(backup);
  assert.equal(restored.state(bob, alice), 'out_pending');
  await world.during(a.say(alice, bob, 'a3'));
  await world.until('all entries', () => restored.heard(bob, alice).length === 3);
  assert.deepEqual(restored.heard(bob, alice), ['a1', 'a2', 'a3']);
});

test('entries that a blocked peer sent do not return after the block', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  await world.during(a.say(alice, bob, 'a1'));
  b.chat.block(bob, alice);
  for (const text of ['a2', 'a3']) await world.during(a.say(alice, bob, text));
  await world.until('they appear delivered', () => a.pairs.pair(alice, bob)?.queued === 0);
  b.chat.request(bob, alice, '');
  await world.until('friends again', () => b.state(bob, alice) === 'friends');
  await world.during(a.say(alice, bob, 'a4'));
  await world.until('the next entry', () => b.heard(bob, alice).includes('a4'));
  assert.deepEqual(b.heard(bob, alice), ['a1', 'a4']);
});

test('a peer that has lost everything ends the friendship, and a new request creates another one', async (t) => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.two();
  const empty = backupOf(t, b.store);
  a.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  b.chat.accept(bob, alice);
  await world.until('friends', () => a.state(alice, bob) === 'friends');
  await world.during(a.say(alice, bob, 'hello'));
  const again = await b.restart(empty);
  await world.during(a.say(alice, bob, 'are you there?'));
  await world.until('the end', () => a.state(alice, bob) === 'none');
  assert.deepEqual(
    a.log(alice, bob).map(({ status }) => status),
    ['sent', 'dropped'],
  );
  again.chat.request(bob, alice, 'I lost my phone');
  await world.until('the new request', () => a.state(alice, bob) === 'in_pending');
});
