import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Page, withEnd, withOlder } from '../../panel/src/lib/pages.ts';

function page(from: number, to: number, hasOlder = from > 1, readTo = 0): Page<{ seq: number }> {
  return { entries: Array.from({ length: to - from + 1 }, (_, i) => ({ seq: from + i })), hasOlder, readTo };
}

function places({ entries }: Page<{ seq: number }>): string {
  return entries.map(({ seq }) => seq).join(' ');
}

test('a new newest page replaces the old one, and earlier entries stay', () => {
  assert.equal(places(withEnd(undefined, page(3, 5))), '3 4 5');
  const known = withOlder(page(6, 8), page(3, 5));
  assert.equal(places(known), '3 4 5 6 7 8');
  const next = withEnd(known, page(7, 9, true, 8));
  assert.equal(places(next), '3 4 5 6 7 8 9');
  assert.equal(next.readTo, 8);
  assert.equal(next.hasOlder, true);
});

test('the beginning of a conversation stays known when its newest page is read again', () => {
  const known = withOlder(page(3, 4), page(1, 2));
  assert.equal(known.hasOlder, false);
  assert.equal(withEnd(known, page(3, 5)).hasOlder, false);
});

test('shows no gap if more items arrived than the end holds', () => {
  const end = withEnd(page(1, 3), page(10, 12));
  assert.equal(places(end), '10 11 12');
  assert.equal(end.hasOlder, true);
});

test('an end without entries is all there is, and a page that reaches too far brings none twice', () => {
  assert.equal(places(withEnd(page(1, 3), page(1, 0))), '');
  assert.equal(places(withOlder(page(3, 4), page(1, 3))), '1 2 3 4');
});
