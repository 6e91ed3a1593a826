import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closestWord } from '../../src/foundation/closest-word.ts';

test('finds the word that was mistyped', () => {
  const words = ['open', 'rm', 'reset', 'status', 'log_level'];
  const meant = (typed: string): string | undefined => closestWord(typed, words);
  assert.equal(meant('opne'), 'open', 'two exchanged letters are one mistake');
  assert.equal(meant('staus'), 'status');
  assert.equal(meant('LOG-LEVEL'), 'log_level');
  assert.equal(meant('rest'), 'reset');
  for (const other of ['opxy', 'rx', 'sta', 'nothing', '']) assert.equal(meant(other), undefined, other);
});
