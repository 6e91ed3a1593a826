import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from '../../../src/capabilities/directory/turns.ts';

test('work on one key runs one after the other, on others side by side', async () => {
  const turns = new Turns<string>();
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const a = turns.run('a', async () => {
    seen.push('a1');
    await first.promise;
    seen.push('a1 ends');
    throw new Error('fails');
  });
  const b = turns.run('a', () => seen.push('a2'));
  await turns.run('b', () => seen.push('b1'));
  assert.deepEqual(seen, ['a1', 'b1']);
  first.resolve();
  await assert.rejects(a, /fails/);
  await b;
  await turns.idle();
  assert.deepEqual(seen, ['a1', 'b1', 'a1 ends', 'a2']);
});
