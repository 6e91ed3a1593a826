/** Conversations of an agent that moves: old entries may be omitted, queued entries are always included. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportChat, importChat } from '../../../src/capabilities/chat/moving.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { MAX_MOVED_CHAT_BYTES, MAX_MOVED_CHAT_ENTRIES } from '../../../src/foundation/moving/agent-document.ts';
import { ChatLog } from '../../../src/foundation/store/chat-log.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { ChatNode, ChatWorld } from '../../support/chat-world.ts';
import { newIdentity } from '../../support/identities.ts';

test('a long log loses its oldest entries; the conversation continues and both sides receive entries', async () => {
  const world = new ChatWorld();
  const [a, alice, b] = await world.two();
  const bob = b.host(newIdentity());
  a.chat.request(alice, bob.aid, '');
  await world.until('the request', () => b.state(bob.aid, alice) === 'in_pending');
  b.chat.accept(bob.aid, alice);
  await world.until('friends', () => a.state(alice, bob.aid) === 'friends');
  const long = MAX_MOVED_CHAT_ENTRIES + 50;
  const log = new ChatLog(b.store);
  b.store.transaction(() => {
    for (let i = 0; i < long; i++) {
      const pair = b.pairs.pair(bob.aid, alice);
      const content = {
        id: new Uint8Array(Buffer.from(i.toString(16).padStart(32, '0'), 'hex')),
        at: 1,
        text: `old ${i}`,
        file: null,
      };
      if (pair !== null) log.receive(pair, [content], content.id, 1);
    }
  });
  a.links.agents.delete(alice);
  a.links.crash();
  await world.during(b.say(bob.aid, alice, 'waits'));
  const { part, leftOut } = exportChat({ store: b.pairs, entries: log }, bob.aid);
  assert.equal(leftOut, 51);
  assert.equal(part[0]?.entries.at(-1)?.text, 'waits');
  await b.down();

  const store = Store.open(':memory:', MIGRATIONS);
  const moved = new ChatNode(world, 'elsewhere', store);
  moved.host(bob);
  store.transaction(importChat({ store: moved.pairs, entries: new ChatLog(store) }, bob.aid, part));
  const back = await a.restart();
  back.links.agents.add(alice);
  await moved.chat.start();
  await world.until('what waited', () => back.heard(alice, bob.aid).includes('waits'));
  await world.during(back.say(alice, bob.aid, 'new'));
  await world.until('the answer', () => moved.heard(bob.aid, alice).includes('new'));
  assert.deepEqual(back.heard(alice, bob.aid), ['waits']);
  assert.equal(moved.log(bob.aid, alice).at(-1)?.seq, long + 2);
  await moved.down();
});

test('times that a document should not contain expire once and permanently', async () => {
  const world = new ChatWorld();
  const [a, alice, , bob] = await world.friends();
  const deps = { store: a.pairs, entries: new ChatLog(a.store) };
  const { part } = exportChat(deps, alice);
  const wrong = part.map((pair) => ({ ...pair, control: null, expires_at: 1, control_until: 1 }));
  a.store.transaction(importChat(deps, alice, wrong));
  assert.equal(a.pairs.overdue(world.clock.now(), 10).length, 1);
  await world.clock.run(120_000);
  assert.deepEqual(a.pairs.overdue(world.clock.now(), 10), []);
  assert.equal(a.state(alice, bob), 'friends');
});

test('if the queued entries exceed the limit of a document, nothing is exported', async () => {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  b.links.crash();
  const log = new ChatLog(a.store);
  const pair = a.pairs.pair(alice, bob);
  assert.ok(pair !== null);
  const text = 'x'.repeat(64 * 1024);
  a.store.transaction(() => {
    for (let i = 0; i * text.length <= MAX_MOVED_CHAT_BYTES; i++)
      log.queue(pair.id, {
        id: new Uint8Array(Buffer.from(i.toString(16).padStart(32, '0'), 'hex')),
        at: 1,
        text,
        file: null,
      });
  });
  assert.throws(
    () => exportChat({ store: a.pairs, entries: log }, alice),
    (error) => error instanceof SvcError && error.code === 'too_large',
  );
});
