import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { NoteCopyStore } from '../../../src/foundation/store/note-copies.ts';
import { bytes, storeWithAgents } from './store-with-agents.ts';

const [BOX, OTHER] = [bytes(1, 32), bytes(2, 32)];

async function filled(): Promise<NoteCopyStore> {
  const copies = new NoteCopyStore(storeWithAgents(1).store);
  for (const [mailbox, n, dueAt] of [
    [BOX, 1, 30],
    [OTHER, 2, 20],
    [BOX, 3, 10],
    [BOX, 4, 50],
  ] as const)
    assert.equal(await copies.add(mailbox, bytes(n, 10 * n), 1000 + n, dueAt), n);
  return copies;
}

const mailboxes = (copies: NoteCopyStore, now: number, except: readonly string[] = []): Uint8Array[] =>
  copies.mailboxes.due(now, 9, except).map(({ item }) => item);

test('due copies of one mailbox are read together, as they were stored', async () => {
  const copies = await filled();
  assert.deepEqual(copies.load(), { count: 4, bytes: 100 });
  assert.deepEqual(copies.mailboxes.due(9, 9, []), []);
  assert.deepEqual(mailboxes(copies, 30), [BOX, OTHER, BOX]);
  assert.deepEqual(mailboxes(copies, 30, [toHex(BOX).toUpperCase()]), [OTHER]);
  assert.deepEqual(copies.dueFor(BOX, 30, 9), [
    { id: 1, mailbox: BOX, record: bytes(1, 10), until: 1001, dueAt: 30, attempts: 0 },
    { id: 3, mailbox: BOX, record: bytes(3, 30), until: 1003, dueAt: 10, attempts: 0 },
  ]);
  assert.deepEqual(
    copies.dueFor(BOX, 30, 1).map(({ id }) => id),
    [1],
  );
});

test('some copies are finished, others wait, and all are due when the network is available again', async () => {
  const copies = await filled();
  assert.equal(copies.settle([3, 2], [{ id: 1, at: 40 }]).count, 2);
  assert.deepEqual(copies.settle([3, 2], []), { count: 0, bytes: 0 }, 'finished copies do not count again');
  assert.deepEqual([copies.load().count, copies.mailboxes.nextDue(0)], [2, 40]);
  assert.deepEqual(copies.dueFor(BOX, 40, 9), [
    { id: 1, mailbox: BOX, record: bytes(1, 10), until: 1001, dueAt: 40, attempts: 1 },
  ]);
  copies.mailboxes.makeDue(5, 5, 99);
  assert.deepEqual(
    copies.dueFor(BOX, 5, 9).map(({ id }) => id),
    [1, 4],
  );
  copies.settle([1, 4], []);
  assert.deepEqual([copies.mailboxes.nextDue(0), copies.load()], [null, { count: 0, bytes: 0 }]);
});
