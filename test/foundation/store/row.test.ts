import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aidFromRow,
  aidsOf,
  blobOf,
  flagOf,
  integerOf,
  orNull,
  orZero,
  textOf,
  wordOf,
} from '../../../src/foundation/store/row.ts';
import type { Row } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';

const [A, B] = [testAid(1), testAid(2)];
const ROW: Row = {
  text: 'a b',
  empty: '',
  zero: 0,
  one: 1,
  two: 2,
  big: 1n,
  blob: Uint8Array.of(1, 2),
  null: null,
  aid: A,
  aids: `${A} ${B}`,
};

test('a column is read in its type', () => {
  assert.equal(textOf(ROW, 'text'), 'a b');
  assert.equal(textOf(ROW, 'empty'), '');
  assert.equal(integerOf(ROW, 'zero'), 0);
  assert.equal(integerOf(ROW, 'two'), 2);
  assert.deepEqual(blobOf(ROW, 'blob'), Uint8Array.of(1, 2));
  assert.deepEqual([flagOf(ROW, 'zero'), flagOf(ROW, 'one'), flagOf(ROW, 'two')], [false, true, false]);
  assert.equal(aidFromRow(ROW, 'aid'), A);
  assert.deepEqual(aidsOf(ROW, 'aids'), [A, B]);
  assert.deepEqual(aidsOf(ROW, 'empty'), []);
  assert.equal(wordOf(ROW, 'text', ['x', 'a b']), 'a b');
});

test('a value of the wrong type throws', () => {
  const wrong = [
    [textOf, ['zero', 'big', 'blob', 'null', 'none']],
    [integerOf, ['text', 'empty', 'big', 'blob', 'null', 'none']],
    [blobOf, ['text', 'empty', 'zero', 'null', 'none']],
    [flagOf, ['text', 'null', 'none']],
    [aidFromRow, ['zero', 'null', 'none']],
    [aidsOf, ['zero', 'null', 'none']],
  ] as const;
  for (const [read, columns] of wrong)
    for (const column of columns) assert.throws(() => read(ROW, column), TypeError, `${read.name} ${column}`);
  for (const column of ['text', 'zero', 'null', 'none'])
    assert.throws(() => wordOf(ROW, column, ['a', 'b']), /a or b/, column);
  for (const [read] of wrong) assert.throws(() => read(undefined, 'text'), TypeError, read.name);
  assert.throws(() => wordOf(undefined, 'text', ['a b']), TypeError);
  assert.throws(() => textOf(ROW, 'zero'), /column zero has no text/);
});

test('null is returned for NULL and for no row only', () => {
  assert.equal(orNull(textOf, ROW, 'null'), null);
  assert.equal(orNull(textOf, undefined, 'text'), null);
  assert.equal(orNull(textOf, ROW, 'text'), 'a b');
  assert.equal(orNull(integerOf, ROW, 'zero'), 0);
  assert.throws(() => orNull(textOf, ROW, 'zero'), TypeError);
  assert.throws(() => orNull(textOf, ROW, 'none'), TypeError);
});

test('a sum over no rows is 0', () => {
  assert.deepEqual([orZero(ROW, 'two'), orZero(ROW, 'null'), orZero(undefined, 'two')], [2, 0, 0]);
  assert.throws(() => orZero(ROW, 'text'), TypeError);
  assert.throws(() => orZero(ROW, 'none'), TypeError);
});
