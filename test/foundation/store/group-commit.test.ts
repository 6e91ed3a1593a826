import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupCommit } from '../../../src/foundation/store/group-commit.ts';
import { Store } from '../../../src/foundation/store/store.ts';

function world(maxWrites?: number) {
  const store = Store.open(':memory:', ['CREATE TABLE things (n INTEGER PRIMARY KEY)']);
  const outer: string[] = [];
  let depth = 0;
  const commits = new GroupCommit(
    (work) => {
      depth++;
      try {
        const result = store.transaction(work);
        if (depth === 1) outer.push('commit');
        return result;
      } finally {
        depth--;
      }
    },
    maxWrites === undefined ? {} : { maxWrites },
  );
  const add = (n: number): void => void store.run`INSERT INTO things (n) VALUES (${n})`;
  const numbers = () => store.all('SELECT n FROM things ORDER BY n').map((row) => row['n']);
  return { store, outer, commits, add, numbers };
}

test('concurrent writes share one commit, and each gets its own result', async () => {
  const { outer, commits, add, numbers } = world();
  const given = await Promise.all([1, 2, 3].map((n) => commits.run(() => [n, add(n)] as const)));
  assert.deepEqual(
    given.map(([n]) => n),
    [1, 2, 3],
  );
  assert.deepEqual([outer.length, numbers()], [1, [1, 2, 3]]);
  await commits.run(() => add(4));
  assert.deepEqual([outer.length, numbers()], [2, [1, 2, 3, 4]]);
});

test('a failed write is rolled back alone', async () => {
  const { outer, commits, add, numbers } = world();
  const failing = commits.run(() => {
    add(2);
    throw new RangeError('no');
  });
  const results = await Promise.allSettled([commits.run(() => add(1)), failing, commits.run(() => add(3))]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await assert.rejects(failing, RangeError);
  assert.deepEqual([outer.length, numbers()], [1, [1, 3]]);
});

test('if the commit fails, every write fails and nothing is stored', async () => {
  const store = Store.open(':memory:', ['CREATE TABLE things (n INTEGER PRIMARY KEY)']);
  let depth = 0;
  const commits = new GroupCommit((work) => {
    depth++;
    try {
      return store.transaction(() => {
        const result = work();
        if (depth === 1) throw new Error('disk failure');
        return result;
      });
    } finally {
      depth--;
    }
  });
  const add = (n: number) => commits.run(() => store.run`INSERT INTO things (n) VALUES (${n})`);
  const results = await Promise.allSettled([add(1), add(2)]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.deepEqual(store.all('SELECT * FROM things'), []);
});

test('writes above the maximum follow in the next commit, in order', async () => {
  const { outer, commits, add, numbers } = world(2);
  const order: number[] = [];
  await Promise.all([1, 2, 3, 4, 5].map(async (n) => commits.run(() => add(n)).then(() => order.push(n))));
  assert.deepEqual([outer.length, order, numbers()], [3, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]);
});

test('a single failing write is rolled back, and the next one is stored', async () => {
  const { commits, add, numbers } = world();
  const failing = commits.run(() => {
    add(1);
    throw new RangeError('no');
  });
  await assert.rejects(failing, RangeError);
  await commits.run(() => add(2));
  assert.deepEqual(numbers(), [2]);
});
