/** Programs that change the address book at the same time keep each other's changes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AddressBook } from '../../src/capabilities/address-book/address-book.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { addressBookOperations } from '../../src/operations/address-book.ts';
import { changeLabels } from '../../src/operations/address-book-client.ts';
import { createClient } from '../../src/operations/client.ts';
import { addressBookHandlers } from '../../src/operations/handlers/address-book.ts';
import { bind } from '../../src/operations/operation.ts';
import { httpFetch } from '../../src/surfaces/cli/daemon-fetch.ts';
import { testAid } from '../support/agents.ts';
import { startWorld } from '../surfaces/rest/support.ts';

/** A daemon's address book, and clients that use the platform's `fetch` or that of the commands. */
async function book(t: TestContext) {
  const stored = new Map<string, unknown>();
  const memory = {
    get: (key: string) => stored.get(key),
    set: (key: string, value: unknown) => void stored.set(key, value),
  };
  const addressBook = new AddressBook(memory);
  const handlers = addressBookHandlers({ addressBook, clock: systemClock });
  const { url } = await startWorld(t, { operations: bind(addressBookOperations, handlers) });
  const clients = [{}, { fetch: httpFetch }].map((more) =>
    createClient({ baseUrl: url, ...more }, addressBookOperations),
  );
  return { addressBook, clients };
}

test('a label that another program adds between the read and the write remains', async (t) => {
  const { addressBook, clients } = await book(t);
  for (const [i, client] of clients.entries()) {
    const [mine, theirs] = [testAid(10 + i), testAid(20 + i)];
    let edits = 0;
    await changeLabels(client, (labels) => {
      if (edits++ === 0) addressBook.label(theirs, `theirs ${i}`);
      return { ...labels, [mine]: `mine ${i}` };
    });
    assert.equal(edits, 2);
    const { aliases } = addressBook.get();
    assert.deepEqual([aliases[mine], aliases[theirs]], [`mine ${i}`, `theirs ${i}`]);
  }
});

test('concurrent writers lose no label', async (t) => {
  const { addressBook, clients } = await book(t);
  const [client] = clients;
  assert.ok(client !== undefined);
  const names = Array.from({ length: 6 }, (_, i) => [testAid(i + 1), `agent ${i}`] as const);
  await Promise.all(names.map(([aid, name]) => changeLabels(client, (labels) => ({ ...labels, [aid]: name }))));
  assert.deepEqual(addressBook.get().aliases, Object.fromEntries(names));
});

test('a write fails if the book changes after every read', async (t) => {
  const { addressBook, clients } = await book(t);
  const [client] = clients;
  assert.ok(client !== undefined);
  let edits = 0;
  await assert.rejects(
    changeLabels(client, (labels) => {
      addressBook.replace({ aliases: { [testAid(1)]: `name ${edits++}` }, favorites: [] });
      return { ...labels, [testAid(2)]: 'mine' };
    }),
    { code: 'wrong_state', status: 412 },
  );
  assert.equal(edits, 8);
  assert.equal(addressBook.get().aliases[testAid(2)], undefined);
});
