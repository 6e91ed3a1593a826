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
  return { run, memory, now: new Date(clock.now()).toISOString(), again: () => new AddressBook(memory) };
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

function emptyBook(): AddressBook {
  return new AddressBook(new MetaStore(Store.open(':memory:', MIGRATIONS)));
}

test('an agent can have several labels, and a client that does not know them keeps them', async () => {
  const { run, again } = bookWorld();
  const several = {
    aliases: { [ANNA]: 'anna', [BOB]: 'bob' },
    other_labels: { [ANNA]: ['boss', 'ANNA'] },
    favorites: [],
  };
  const stored = { ...several, other_labels: { [ANNA]: ['boss'] } };
  assert.deepEqual(await run('addressBookPut', several), stored);
  assert.deepEqual(
    [again().find('Boss'), again().labels(ANNA), again().labels(BOB)],
    [ANNA, ['anna', 'boss'], ['bob']],
  );
  const before = again().version();
  await run('addressBookPut', { aliases: { [ANNA]: 'Ann' }, favorites: [] });
  assert.deepEqual(again().labels(ANNA), ['Ann', 'boss']);
  assert.notEqual(again().version(), before);
  // A label that becomes the shown one is not listed twice.
  await run('addressBookPut', { aliases: { [ANNA]: 'boss' }, favorites: [] });
  assert.deepEqual(await run('addressBookGet'), { aliases: { [ANNA]: 'boss' }, favorites: [] });
  const refused: unknown[] = [
    { aliases: {}, other_labels: { [ANNA]: ['x'] }, favorites: [] },
    { aliases: { [ANNA]: 'a', [BOB]: 'b' }, other_labels: { [ANNA]: ['B'] }, favorites: [] },
    { aliases: { [ANNA]: 'a' }, other_labels: { [ANNA]: ['-x'] }, favorites: [] },
    { aliases: { [ANNA]: 'a' }, other_labels: { [ANNA]: [] }, favorites: [] },
  ];
  for (const body of refused)
    await assert.rejects(run('addressBookPut', body), { code: 'invalid_request' }, JSON.stringify(body));
});

test('a label cannot look like an AID, a key, a host or a path', () => {
  const hex = 'ab'.repeat(32);
  const looks = [`${ANNA.slice(0, -1)}x`, ANNA.slice(0, 20), 'did:key:z6MkX', '0xabc', hex, '1'.repeat(30)];
  for (const label of [...looks, 'localhost', '10.0.0.1', 'home:8080', 'https://x', '[::1]', 'a/b'])
    assert.throws(() => emptyBook().label(BOB, label), { code: 'invalid_request' }, label);
  for (const label of ['lang.translate', 'home office', 'Zoë', 'v1.2', '7', 'C#', 'bc1'])
    assert.doesNotThrow(() => emptyBook().label(BOB, label), label);
});

test('a name stands for a label first, then for the profile name of one local agent', () => {
  const book = emptyBook();
  book.label(BOB, 'bob');
  const own =
    (...agents: (readonly [string, string])[]) =>
    () =>
      agents.map(([aid, name]) => ({ aid, name }));
  assert.equal(book.agent(ANNA.toUpperCase(), own()), ANNA);
  assert.equal(book.agent(' BOB ', own([ANNA, 'bob'])), BOB);
  assert.equal(book.agent('Walker', own([ANNA, 'walker'], [BOB, ''])), ANNA);
  assert.throws(() => book.agent('same', own([ANNA, 'same'], [BOB, 'Same'])), {
    code: 'ambiguous_label',
    details: { aids: [ANNA, BOB] },
  });
  // Neither an AID with a typo nor an empty text is a name.
  const typo = `${ANNA.slice(0, -1)}x`;
  for (const text of [typo, '', ' ', 'x'.repeat(101), 'nobody'])
    assert.throws(() => book.agent(text, own([BOB, typo], [ANNA, ''])), { code: 'bad_aid' }, text);
});

test('a label of a transaction that is rolled back is gone', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const book = new AddressBook(new MetaStore(store));
  assert.throws(() =>
    store.transaction(() => {
      book.label(ANNA, 'anna');
      throw new Error('the disk is full');
    }),
  );
  assert.deepEqual([book.get().aliases, book.find('anna'), book.labels(ANNA)], [{}, null, []]);
  book.label(ANNA, 'anna');
  assert.equal(book.find('anna'), ANNA);
});

test('the labels of a result are those of its AIDs', () => {
  const book = emptyBook();
  assert.deepEqual(book.labelsIn({ aid: ANNA }), {});
  book.label(ANNA, 'anna');
  assert.deepEqual(book.labelsIn({ list: [{ peer: ANNA, text: `to ${ANNA}` }, BOB, null, 1, '__proto__'] }), {
    [ANNA]: 'anna',
  });
  assert.deepEqual(book.labelsIn({ text: `to ${ANNA}`, bytes: new Uint8Array(3) }), {});
  let deep: unknown = ANNA;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  assert.deepEqual(book.labelsIn(deep), {});
});

test('a label is one label in every encoding of its accents', async () => {
  const { run, again } = bookWorld();
  await run('addressBookPut', { aliases: { [ANNA]: 'Jose\u0301' }, favorites: [] });
  assert.equal(again().find('Jos\u00e9'), ANNA);
  const both = { aliases: { [ANNA]: 'Jose\u0301', [BOB]: 'jos\u00e9' }, favorites: [] };
  await assert.rejects(run('addressBookPut', both), { code: 'invalid_request' });
});

test('a new label must not look like the label of another agent', async () => {
  const { run, again } = bookWorld();
  const put = (other: string) =>
    run('addressBookPut', { aliases: { [ANNA]: 'Alice pay', [BOB]: other }, favorites: [] });
  // Cyrillic, Greek, capital i for l, digits, full width, mathematical letters.
  const alike = ['Аlice pay', 'αlice pαy', 'AIice pay', 'A1ice pay', 'Ａlice pay', '𝐀𝐥𝐢𝐜𝐞 pay', 'аlісе рау'];
  for (const label of alike)
    await assert.rejects(put(label), { code: 'invalid_request', message: /looks like "/ }, label);
  // A selector of an emoji, other blanks, and nothing but the accents of another script.
  for (const label of ['Alice\uFE0F pay', 'Alice  pay', 'Alice\u2003pay', 'Alice\u1680pay'])
    await assert.rejects(put(label), { code: 'invalid_request', message: /looks like "/ }, label);
  for (const label of ['Alice\u034F pay', 'Alice\u3164pay', 'Alice\u2800pay', 'Al\u17B4ice pay', 'Alice \u{E0101}pay'])
    await assert.rejects(put(label), { code: 'invalid_request' }, label);
  for (const label of ['Alice play', 'Алиса', 'Alicia', 'Alice \u2764\uFE0F']) await put(label);
  const pairs = [
    ['Zo\u00EB', 'Zo\u0451'],
    ['caf\u00E9', 'c\u0430f\u0435\u0301'],
    ['k\u00E1ra', 'k\u03ACra'],
    ['corner', 'comer'],
    ['ann-lee', 'ann\u2010lee'],
    ['ann-lee', 'ann\u2212lee'],
    ["o'neil", 'o\u2019neil'],
  ] as const;
  for (const [one, other] of pairs) {
    const both = { aliases: { [ANNA]: one, [BOB]: other }, favorites: [] };
    await assert.rejects(run('addressBookPut', both), { code: 'invalid_request', message: /looks like "/ }, other);
  }
  // The same agent may have both, and an import skips the label.
  const others = { aliases: { [ANNA]: 'Alice' }, other_labels: { [ANNA]: ['Аlice'] }, favorites: [] };
  assert.deepEqual(await run('addressBookPut', others), others);
  const book = again();
  book.label(BOB, 'AIice', 'bob');
  assert.deepEqual(again().labels(BOB), ['bob']);
});
