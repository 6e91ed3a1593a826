/** A conversation of many entries: no operation costs more database work than in a small one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type ChatNode, ChatWorld } from '../../support/chat-world.ts';
import { recordingStore } from '../../support/recording-store.ts';
import { scaled } from '../../support/scale.ts';

const ENTRIES = scaled(10_000, 100_000);
/** Limits of one operation, independent of the size of the conversation. */
const MAX_STATEMENTS = 40;
const MAX_ROWS = 500;

/** Adds received entries to the log of one side. */
function fill(node: ChatNode, aid: Aid, peer: Aid): void {
  const { store } = node;
  const pair = node.pairs.pair(aid, peer)?.id ?? 0;
  store.transaction(() => {
    store.run(
      `INSERT INTO chat_entries (pair, seq, id, incoming, status, at, text, bytes)
       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ENTRIES})
       SELECT ?, i, CAST(printf('%016d', i) AS BLOB), 1, 0, i, 'text ' || i, 200 FROM n`,
      pair,
    );
    store.run(
      'UPDATE chat_pairs SET last_seq = ?1, unread = ?1, unread_bytes = ?1 * 200, last_at = ?1 WHERE id = ?2',
      ENTRIES,
      pair,
    );
  });
}

test('operations on a conversation of many entries need few statements and rows', async () => {
  const recording = recordingStore();
  const world = new ChatWorld();
  const [first, b] = [await world.node('a', recording.store), await world.node('b')];
  const [alice, bob] = [first.host().aid, b.host().aid];
  first.chat.request(alice, bob, '');
  await world.until('the request', () => b.state(bob, alice) === 'in_pending');
  b.chat.accept(bob, alice);
  await world.until('the answer', () => first.state(alice, bob) === 'friends');
  fill(first, alice, bob);
  const a = await first.restart();

  const cheap = async (what: string, work: () => unknown): Promise<void> => {
    const { statements, rows } = await recording.measure(work);
    assert.ok(statements <= MAX_STATEMENTS && rows <= MAX_ROWS, `${what}: ${statements} statements, ${rows} rows`);
  };
  for (const after of [0, ENTRIES / 2, ENTRIES - 10])
    await cheap(`read after ${after}`, () => a.chat.read(alice, bob, after, 200));
  assert.equal(a.chat.read(alice, bob, ENTRIES - 10, 200).entries.length, 10);
  await cheap('contacts', () => a.chat.contacts(alice, 'friends'));
  assert.equal(a.chat.contacts(alice, 'friends')[0]?.unread, ENTRIES);
  await cheap('counters', () => a.chat.pending());
  await cheap('mark read', () => a.chat.markRead(alice, bob, ENTRIES - 1000));
  assert.equal(a.chat.pending().get(alice)?.unread, 1000);
  await cheap('send', () => world.during(a.say(alice, bob, 'one more')));
  await world.until('the message', () => b.heard(bob, alice).length === 1);
  await cheap('receive one', async () => {
    await world.during(b.say(bob, alice, 'and back'));
    await world.until('the answer', () => a.chat.pending().get(alice)?.unread === 1001);
  });
  assert.deepEqual(a.chat.markRead(alice, bob, 0), { readCursor: ENTRIES + 2, unread: 0 });
  assert.deepEqual(recording.scans('chat_entries'), []);
  await a.down();
  await b.down();
});
