import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressBook } from '../../../src/capabilities/address-book/address-book.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { addressBookOperations } from '../../../src/operations/address-book.ts';
import { addressBookHandlers } from '../../../src/operations/handlers/address-book.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { bind, type CallContext } from '../../../src/operations/operation.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const CONTEXT: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};
const [ANNA, BOB] = [testAid(1), testAid(2)];

function bookWorld() {
  const memory = new MetaStore(Store.open(':memory:', MIGRATIONS));
  const clock = new TestClock();
  const handlers = bind(addressBookOperations, addressBookHandlers({ addressBook: new AddressBook(memory), clock }));
  const run = async (name: string, body?: unknown): Promise<unknown> => {
    const operation = handlers.find(({ declaration }) => declaration.name === name);
    assert.ok(operation, name);
    const input = compileInput(operation.declaration)({ params: {}, query: {}, body });
    return JSON.parse(JSON.stringify(await operation.run(input, CONTEXT)));
  };
  return { run, now: new Date(clock.now()).toISOString(), again: () => new AddressBook(memory) };
}

test('the whole book is replaced and stored', async () => {
  const { run, now, again } = bookWorld();
  assert.deepEqual(await run('addressBookGet'), { aliases: {}, favorites: [] });
  const stored = await run('addressBookPut', {
    aliases: { [ANNA.toUpperCase()]: 'Anna B.', [BOB]: 'bob' },
    favorites: [{ aid: BOB }, { id: 'f', aid: ANNA, skill: 'lang', protocols: ['http'], addedAt: now }],
  });
  assert.deepEqual(stored, {
    aliases: { [ANNA]: 'Anna B.', [BOB]: 'bob' },
    favorites: [
      { id: BOB, aid: BOB, skill: '', protocols: [], addedAt: now },
      { id: 'f', aid: ANNA, skill: 'lang', protocols: ['http'], addedAt: now },
    ],
  });
  assert.deepEqual(await run('addressBookGet'), stored);
  assert.equal(again().find(' anna b. '), ANNA);
  assert.equal(again().find('nobody'), null);
  assert.deepEqual(await run('addressBookPut', { aliases: {}, favorites: [] }), { aliases: {}, favorites: [] });
});

test('ambiguous labels are rejected and change nothing', async () => {
  const { run } = bookWorld();
  await run('addressBookPut', { aliases: { [ANNA]: 'anna' }, favorites: [] });
  const refused: [unknown, string][] = [
    [{ aliases: { aid1x: 'x' }, favorites: [] }, 'bad_aid'],
    [{ aliases: {}, favorites: [{ id: 'x', skill: 'y' }] }, 'invalid_request'],
    [{ aliases: {}, favorites: [{ aid: 'aid1x' }] }, 'bad_aid'],
    [{ aliases: { [ANNA]: 'same', [BOB]: 'SAME' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [ANNA]: BOB }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [ANNA]: '--api' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [ANNA]: 'a\u202eb' }, favorites: [] }, 'invalid_request'],
    [{ aliases: { [ANNA]: '' }, favorites: [] }, 'invalid_request'],
    [{ aliases: {} }, 'invalid_request'],
  ];
  for (const [body, code] of refused) await assert.rejects(run('addressBookPut', body), { code }, JSON.stringify(body));
  assert.deepEqual(await run('addressBookGet'), { aliases: { [ANNA]: 'anna' }, favorites: [] });
});

test('a label is set only if the agent has none and no other agent has it', () => {
  const book = new AddressBook(new MetaStore(Store.open(':memory:', MIGRATIONS)));
  book.label(ANNA, 'anna');
  book.label(ANNA, 'other');
  book.label(BOB, 'Anna');
  assert.deepEqual(book.get().aliases, { [ANNA]: 'anna' });
  book.label(BOB, 'bob');
  assert.deepEqual([book.find(' BOB '), book.find('anna'), book.find('carol')], [BOB, ANNA, null]);
});
