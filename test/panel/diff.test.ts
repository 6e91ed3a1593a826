import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { diffLines, linesOf } from '../../panel/src/lib/diff.ts';

function shown(before: string, after: string): string {
  const signs = { '-1': '-', 0: ' ', 1: '+' } as const;
  return diffLines(before.split(''), after.split(''))
    .map(({ side, text }) => signs[side] + text)
    .join('');
}

test('lines that stay are in both, and others are removed or added', () => {
  assert.equal(shown('abc', 'abc'), ' a b c');
  assert.equal(shown('abc', 'axc'), ' a-b+x c');
  assert.equal(shown('', 'ab'), '+a+b');
  assert.equal(shown('ab', ''), '-a-b');
  assert.equal(shown('abcd', 'bd'), '-a b-c d');
});

test('both texts can be read from the lines, also if they are long', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 300 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const of = (side: number) => lines.filter((line) => line.side !== side).map((line) => line.text);
      assert.deepEqual([of(1), of(-1)], [before, after]);
    }),
  );
});

test('a value is shown as text or JSON', () => {
  assert.deepEqual(linesOf('a\r\nb'), ['a', 'b']);
  assert.deepEqual(linesOf({ a: 1 }), ['{', '  "a": 1', '}']);
  for (const none of [null, undefined, '']) assert.deepEqual(linesOf(none), []);
});
