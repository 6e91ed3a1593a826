import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aidOfLabel, MAX_SUGGESTED, suggested } from '../../panel/src/lib/suggest.ts';

const NAMES: ReadonlyMap<string, { readonly text: string }> = new Map([
  ['aid1aaa', { text: 'Benchmark' }],
  ['aid1bbb', { text: 'reuben' }],
  ['aid1ccc', { text: 'Ben' }],
  ['aid1ddd', { text: 'ann' }],
  ['aid1eee', { text: 'Ann' }],
]);

test('suggests agents by label or AID, labels with that start first', () => {
  assert.deepEqual(suggested(NAMES, ' BEN '), ['aid1ccc', 'aid1aaa', 'aid1bbb']);
  assert.deepEqual(suggested(NAMES, '1ddd'), ['aid1ddd']);
  assert.deepEqual(suggested(NAMES, 'nobody'), []);
  const many = new Map(Array.from({ length: 20 }, (_, i) => [`aid1${i}`, { text: `agent ${i}` }]));
  assert.equal(suggested(many, '').length, MAX_SUGGESTED);
});

test('a label names an agent only if no other agent has it', () => {
  assert.equal(aidOfLabel(NAMES, 'ben'), 'aid1ccc');
  assert.equal(aidOfLabel(NAMES, 'ann'), undefined);
  assert.equal(aidOfLabel(NAMES, ''), undefined);
  assert.equal(aidOfLabel(NAMES, 'be'), undefined);
});
