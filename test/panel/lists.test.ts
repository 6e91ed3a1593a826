import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextOrder, orderOf, sortedBy } from '../../panel/src/lib/order.ts';

const ROWS = [
  { name: 'b', n: 10 },
  { name: 'a', n: 9 },
  { name: 'c', n: 100 },
];
const COLUMNS = [
  { name: 'name', by: ({ name }: (typeof ROWS)[number]) => name },
  { name: 'n', by: ({ n }: (typeof ROWS)[number]) => n },
];

function sorted(order: string): string {
  return sortedBy(ROWS, COLUMNS, orderOf(order))
    .map(({ name }) => name)
    .join('');
}

test('sorts a table by text and by number in both directions, and keeps the order otherwise', () => {
  assert.equal(sorted('name'), 'abc');
  assert.equal(sorted('-name'), 'cba');
  assert.equal(sorted('n'), 'abc');
  assert.equal(sorted('-n'), 'cba');
  for (const order of ['', '-', 'unknown']) assert.equal(sorted(order), 'bac', order);
});

test('pressing the head of a column goes up, down, and back to how the rows came', () => {
  assert.equal(nextOrder(orderOf(''), 'n'), 'n');
  assert.equal(nextOrder(orderOf('name'), 'n'), 'n');
  assert.equal(nextOrder(orderOf('n'), 'n'), '-n');
  assert.equal(nextOrder(orderOf('-n'), 'n'), '');
});
