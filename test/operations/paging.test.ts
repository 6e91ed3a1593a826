import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseContact } from '../../src/foundation/address.ts';
import { joiningHandlers } from '../../src/operations/handlers/joining.ts';
import { joiningOperations } from '../../src/operations/joining.ts';
import { listPage, numberCursor } from '../../src/operations/paging.ts';
import { operationRunner } from '../support/run-operation.ts';

function sortable(...counts: readonly number[]) {
  return counts.map((count) => ({ sortKey: numberCursor(count), entry: count }));
}

test('pages contain each entry once, even if entries are removed and added between pages', () => {
  assert.deepEqual(listPage(sortable(10, 9, 1), {}), { entries: [1, 9, 10], next_cursor: undefined });
  const first = listPage(sortable(1, 2, 3, 4), { limit: 2 });
  assert.deepEqual(first.entries, [1, 2]);
  const page = { limit: 2, cursor: first.next_cursor ?? '' };
  assert.deepEqual(listPage(sortable(3, 4), page).entries, [3, 4]);
  assert.deepEqual(listPage(sortable(1, 2, 3, 4, 5), page).entries, [3, 4]);
  assert.deepEqual(listPage(sortable(1, 2, 3), page), { entries: [3], next_cursor: undefined });
  assert.deepEqual(listPage(sortable(1, 2), page), { entries: [], next_cursor: undefined });
});

test('contacts are listed in pages', async () => {
  const contacts = ['c.example.org:4121', 'a.example.org:4121', 'b.example.org:4121'].map((text, i) => {
    const contact = parseContact(text);
    assert.ok(contact !== null);
    return { contact, name: undefined, hasAnswered: true, isJoined: i === 1, state: 'met' as const, addresses: [] };
  });
  const run = operationRunner(
    joiningOperations,
    joiningHandlers({
      joining: {
        invite: () => assert.fail(),
        join: () => assert.fail(),
        forget: () => assert.fail(),
        contacts: () => contacts,
      },
    }),
  );
  type Answer = { readonly contacts: readonly { readonly contact: string }[]; readonly next_cursor?: string };
  const ask = async (query: object) => (await run('contacts', { query })) as Answer;
  const first = await ask({ limit: 2 });
  const second = await ask({ limit: 2, cursor: first.next_cursor });
  assert.deepEqual(
    [...first.contacts, ...second.contacts].map(({ contact }) => contact.charAt(0)),
    ['b', 'c', 'a'],
  );
  assert.equal(second.next_cursor, undefined);
  assert.equal((await ask({})).contacts.length, 3);
});
