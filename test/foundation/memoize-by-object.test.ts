import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoizeByObject } from '../../src/foundation/lazy.ts';

test('a result is made once for each object, and equal objects are two', () => {
  let made = 0;
  const doubled = memoizeByObject(({ n }: { readonly n: number }) => {
    made++;
    return { twice: n * 2 };
  });
  const [one, other] = [{ n: 2 }, { n: 2 }];
  assert.deepEqual(doubled(one), { twice: 4 });
  assert.equal(doubled(one), doubled(one));
  assert.notEqual(doubled(other), doubled(one));
  assert.equal(made, 2);
});
