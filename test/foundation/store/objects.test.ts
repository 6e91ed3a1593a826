import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ObjectRepository, type ObjectRow } from '../../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';

const PREFIXES = Buffer.alloc(32);
const [A, B] = [testAid(1), testAid(2)];

function world(): { store: Store; objects: ObjectRepository } {
  const store = Store.open(':memory:', MIGRATIONS);
  return { store, objects: new ObjectRepository(store) };
}

function object(objectId: string, more: Partial<ObjectRow> = {}): ObjectRow {
  const facts = { name: 'n', size: 10, createdAt: 1, path: null, fingerprint: 'f', hashedAt: 2 };
  return { aid: A, objectId, ...facts, ...more };
}

test('an object is read as it was stored, and a second put keeps its creation time and size', () => {
  const { objects } = world();
  objects.put(object('x', { path: 'a/b' }), PREFIXES);
  assert.deepEqual(objects.get(A, 'x'), object('x', { path: 'a/b' }));
  assert.equal(objects.get(B, 'x'), null);
  objects.put(object('x', { name: 'm', size: 99, createdAt: 99, fingerprint: 'g', hashedAt: 3 }), PREFIXES);
  assert.deepEqual(objects.get(A, 'x'), object('x', { name: 'm', fingerprint: 'g', hashedAt: 3 }));
});

test('agents share stored bytes and their newest fingerprint; files in place keep their own', () => {
  const { objects } = world();
  objects.put(object('x'), PREFIXES);
  objects.put(object('x', { aid: testAid(3), path: 'p' }), PREFIXES);
  objects.put(object('x', { aid: B, fingerprint: 'g', hashedAt: 9 }), PREFIXES);
  objects.put(object('x', { aid: testAid(4), path: 'q', fingerprint: 'q', hashedAt: 10 }), PREFIXES);
  const known = (n: number) => {
    const row = objects.get(testAid(n), 'x');
    return [row?.fingerprint, row?.hashedAt];
  };
  assert.deepEqual([1, 2, 3, 4].map(known), [
    ['g', 9],
    ['g', 9],
    ['f', 2],
    ['q', 10],
  ]);
  objects.setFingerprint({ objectId: 'x', path: 'p' }, 'h', 11);
  assert.deepEqual(
    [known(1), known(3)],
    [
      ['g', 9],
      ['h', 11],
    ],
  );
});

test('lists are ordered by ID, and usage counts stored bytes only', () => {
  const { objects } = world();
  for (const id of ['c', 'a', 'b']) objects.put(object(id), PREFIXES);
  objects.put(object('d', { path: 'p', size: 1000 }), PREFIXES);
  objects.put(object('e', { aid: B }), PREFIXES);
  const ids = (limit: number, after?: string) => objects.list(A, limit, after).map(({ objectId }) => objectId);
  assert.deepEqual(ids(3), ['a', 'b', 'c']);
  assert.deepEqual(ids(9, 'b'), ['c', 'd']);
  assert.deepEqual(objects.usage(A), { count: 4, bytes: 30 });
  assert.deepEqual(objects.usage(testAid(9)), { count: 0, bytes: 0 });
});

test('finds the agents with an object, and whether its bytes are stored', () => {
  const { objects } = world();
  objects.put(object('x', { path: 'p' }), PREFIXES);
  assert.equal(objects.isStored('x'), false);
  objects.put(object('x', { aid: B }), PREFIXES);
  assert.equal(objects.isStored('x'), true);
  assert.deepEqual(objects.agentsWith('x', 9), [A, B].sort());
  assert.equal(objects.agentsWith('x', 1).length, 1);
  assert.equal(objects.delete(B, 'x'), true);
  assert.equal(objects.delete(B, 'x'), false);
  assert.equal(objects.isStored('x'), false);
  assert.deepEqual(objects.agentsWith('x', 9), [A]);
});

test('bytes are retired until an object uses them, and after its last one is deleted', () => {
  const { objects } = world();
  objects.expectBytes('x');
  objects.expectBytes('x');
  assert.deepEqual(objects.retired(), ['x']);
  objects.put(object('x'), PREFIXES);
  assert.deepEqual(objects.retired(), []);
  objects.expectBytes('x');
  assert.deepEqual(objects.retired(), [], 'bytes in use');
  objects.put(object('x', { aid: B }), PREFIXES);
  objects.delete(A, 'x');
  assert.deepEqual(objects.retired(), []);
  objects.delete(B, 'x');
  assert.deepEqual(objects.retired(), ['x']);
  objects.removeRetired('y');
  assert.deepEqual(objects.retired(), ['x']);
  objects.removeRetired('x');
  assert.deepEqual(objects.retired(), []);
});

test('holders are ordered by the last sighting, which never moves back', () => {
  const { objects } = world();
  objects.addHolder('x', A, 5);
  objects.addHolder('x', B, 6);
  objects.addHolder('y', B, 7);
  assert.deepEqual(objects.holders('x'), [B, A]);
  objects.addHolder('x', A, 8);
  objects.addHolder('x', A, 1);
  assert.deepEqual(objects.holders('x'), [A, B]);
  objects.removeHolder('x', B);
  assert.deepEqual([objects.holders('x'), objects.holders('y')], [[A], [B]]);
});

test('the sixteen most recently seen holders of an object are kept', () => {
  const { objects } = world();
  for (let n = 1; n <= 17; n++) objects.addHolder('x', testAid(n), n);
  assert.deepEqual(
    objects.holders('x'),
    Array.from({ length: 16 }, (_, i) => testAid(17 - i)),
  );
});

test('20,000 holders are kept in total: every 256th insertion evicts the least recently seen', () => {
  const { store, objects } = world();
  store.run(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
     INSERT INTO object_holders SELECT 'o' || i, 'h', i FROM n`,
  );
  const holders = () => Number(store.one('SELECT count(*) AS n FROM object_holders')?.['n']);
  for (let i = 0; i < 255; i++) objects.addHolder(`new${i}`, A, 30_000 + i);
  assert.equal(holders(), 20_255);
  objects.addHolder('last', A, 40_000);
  assert.equal(holders(), 20_000);
  assert.deepEqual(objects.holders('o256'), []);
  assert.deepEqual(objects.holders('o257'), ['h']);
});
