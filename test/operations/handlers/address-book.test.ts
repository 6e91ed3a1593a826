import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressBook } from '../../../src/capabilities/address-book/address-book.ts';
import { isoTime } from '../../../src/foundation/clock.ts';
import { MAX_BOOK_ENTRIES, MAX_LABELS_PER_AGENT } from '../../../src/foundation/domain/agents.ts';
import { addressBookOperations } from '../../../src/operations/address-book.ts';
import { addressBookHandlers } from '../../../src/operations/handlers/address-book.ts';
import type { CallContext } from '../../../src/operations/operation.ts';
import { testAid } from '../../support/agents.ts';
import { operationRunner } from '../../support/run-operation.ts';
import { TestClock } from '../../support/test-clock.ts';

const [FRIEND, OTHER] = [testAid(1), testAid(2)];

function setUp() {
  const clock = new TestClock();
  const memory = new Map<string, unknown>();
  const addressBook = new AddressBook({ get: (key) => memory.get(key), set: (key, value) => memory.set(key, value) });
  return { clock, memory, run: operationRunner(addressBookOperations, addressBookHandlers({ addressBook, clock })) };
}

test('an address book is empty at first, and returns the stored content', async () => {
  const { run, clock } = setUp();
  assert.deepEqual(await run('addressBookGet'), { aliases: {}, favorites: [] });
  const put = await run('addressBookPut', {
    body: {
      aliases: { [FRIEND.toUpperCase()]: 'Friend' },
      favorites: [
        { id: 'mine', aid: FRIEND, skill: 'lang.translate', protocols: ['http'], addedAt: '2020-01-01T00:00:00Z' },
        { aid: OTHER.toUpperCase() },
      ],
    },
  });
  const expected = {
    aliases: { [FRIEND]: 'Friend' },
    favorites: [
      { id: 'mine', aid: FRIEND, skill: 'lang.translate', protocols: ['http'], addedAt: '2020-01-01T00:00:00Z' },
      // Defaults: the AID in canonical form as id, empty members, and the current time.
      { id: OTHER, aid: OTHER, skill: '', protocols: [], addedAt: isoTime(clock.now()) },
    ],
  };
  assert.deepEqual(put, expected);
  assert.deepEqual(await run('addressBookGet'), expected);
});

test('the ids of favorites are returned as they were sent: texts or integers', async () => {
  const { run } = setUp();
  const favorites = [
    { id: 7, aid: FRIEND, skill: '', protocols: [], addedAt: '2020-01-01T00:00:00Z' },
    { id: '7', aid: OTHER, skill: '', protocols: [], addedAt: '2020-01-01T00:00:00Z' },
  ];
  await run('addressBookPut', { body: { aliases: {}, favorites } });
  assert.deepEqual(await run('addressBookGet'), { aliases: {}, favorites });
});

test('one label, one favorite, or one further label too many is quota_exceeded', async () => {
  const { run } = setUp();
  const many = Array.from({ length: MAX_BOOK_ENTRIES + 1 }, (_, i) => testAid(i + 1));
  const aliases = Object.fromEntries(many.map((aid, i) => [aid, `label ${i}`]));
  const others = Array.from({ length: MAX_LABELS_PER_AGENT }, (_, i) => `other ${i}`);
  for (const body of [
    { aliases, favorites: [] },
    { aliases: {}, favorites: many.map((aid) => ({ aid })) },
    { aliases: { [FRIEND]: 'Friend' }, other_labels: { [FRIEND]: others }, favorites: [] },
  ])
    await assert.rejects(run('addressBookPut', { body }), { code: 'quota_exceeded', status: 413 });
});

test('an address book is replaced completely or not at all', async () => {
  const { run } = setUp();
  await run('addressBookPut', { body: { aliases: { [FRIEND]: 'Friend' }, favorites: [{ aid: FRIEND }] } });
  const before = await run('addressBookGet');
  for (const [body, code] of [
    [{ aliases: { aid1x: 'Nobody' }, favorites: [] }, 'bad_aid'],
    [{ aliases: {}, favorites: [{ aid: 'aid1x' }] }, 'bad_aid'],
    [{ aliases: { [FRIEND]: 'same', [OTHER]: 'SAME' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [FRIEND]: OTHER }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [FRIEND]: '--via' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [FRIEND]: '' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [FRIEND]: 'x'.repeat(65) }, favorites: [] }, 'invalid_request'],
    [{ aliases: {}, favorites: [{ aid: FRIEND, skill: 'x'.repeat(257) }] }, 'invalid_request'],
    [{ aliases: {}, favorites: [{ aid: FRIEND, protocols: Array(17).fill('p') }] }, 'invalid_request'],
    [{ aliases: {}, favorites: [{ aid: FRIEND, addedAt: 'yesterday' }] }, 'invalid_request'],
    [{ aliases: {}, favorites: [{ aid: FRIEND, extra: 1 }] }, 'invalid_request'],
    [{ aliases: {} }, 'invalid_request'],
  ] as const)
    await assert.rejects(run('addressBookPut', { body }), { code }, JSON.stringify(body).slice(0, 80));
  assert.deepEqual(await run('addressBookGet'), before);
  assert.deepEqual(await run('addressBookPut', { body: { aliases: {}, favorites: [] } }), {
    aliases: {},
    favorites: [],
  });
});

test('a write with an outdated version fails', async () => {
  const clock = new TestClock();
  const memory = new Map<string, unknown>();
  const addressBook = new AddressBook({ get: (key) => memory.get(key), set: (key, value) => memory.set(key, value) });
  const handlers = addressBookHandlers({ addressBook, clock });
  const shown: string[] = [];
  const context = (ifMatch?: string): CallContext => ({
    origin: 'local',
    signal: new AbortController().signal,
    requireToken: () => {},
    setStatus: () => {},
    showVersion: (etag) => void shown.push(etag),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  });
  const put = async (label: string, ifMatch?: string): Promise<unknown> =>
    handlers.addressBookPut({ aliases: { [FRIEND]: label }, favorites: [] }, context(ifMatch));
  await handlers.addressBookGet({}, context());
  const [first = ''] = shown.splice(0);
  assert.match(first, /^"[\w-]{43}"$/);
  await put('One', first);
  const [second = ''] = shown.splice(0);
  assert.notEqual(second, first);
  await assert.rejects(put('Two', first), { code: 'wrong_state', status: 412 });
  assert.deepEqual(addressBook.get().aliases, { [FRIEND]: 'One' });
  await put('Two', `"other", ${second}`);
  await put('Three', '*');
  await put('Four');
  assert.deepEqual(addressBook.get().aliases, { [FRIEND]: 'Four' });
});

test('assistants get the labels of each agent', async () => {
  const { run } = setUp();
  assert.deepEqual(await run('addressBookList'), { agents: [] });
  await run('addressBookPut', {
    body: { aliases: { [FRIEND]: 'Friend', [OTHER]: 'other' }, other_labels: { [FRIEND]: ['ada'] }, favorites: [] },
  });
  assert.deepEqual(await run('addressBookList'), {
    agents: [
      { aid: FRIEND, labels: ['Friend', 'ada'] },
      { aid: OTHER, labels: ['other'] },
    ],
  });
});
