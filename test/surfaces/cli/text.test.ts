import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { relativeTime } from '../../../src/foundation/display-text.ts';
import { commandWord, formatFields, formatTable, safeLine, safeText } from '../../../src/surfaces/cli/text.ts';

const DANGEROUS = /(?!\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

test('escapes control and invisible characters', () => {
  assert.equal(safeLine('\u001b]0;owned\u0007'), '\\u{1b}]0;owned\\u{7}');
  assert.equal(safeLine('a\u202eb\u200bc\u2028d'), 'a\\u{202e}b\\u{200b}c\\u{2028}d');
  assert.equal(safeLine('\u{e0041}'), '\\u{e0041}');
  assert.equal(safeLine('two\nlines'), 'two\\u{a}lines');
  assert.equal(safeText('two\nlines\tand \u001b[2J'), 'two\nlines\tand \\u{1b}[2J');
  assert.equal(safeLine('Größe 東京 👍'), 'Größe 東京 👍');
});

test('words of printed commands are quoted for a shell if necessary', () => {
  for (const word of ['bob', 'aid1qqq', 'Größe-1', 'a@b.example/c']) assert.equal(commandWord(word), word);
  assert.equal(commandWord('Anna Berg'), "'Anna Berg'");
  assert.equal(commandWord("it's $(x)"), "'it'\\''s $(x)'");
  assert.equal(commandWord(''), "''");
});

test('no foreign text contains dangerous characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
      assert.doesNotMatch(safeLine(text), DANGEROUS);
      assert.doesNotMatch(safeText(text).replaceAll(/[\n\t]/g, ''), DANGEROUS);
      assert.doesNotMatch(String(formatTable(['A'], [[text]])).replaceAll('\n', ''), DANGEROUS);
      assert.doesNotMatch(String(formatFields({ a: text })), DANGEROUS);
    }),
    { seed: 7, numRuns: 500 },
  );
});

test('aligns columns for all scripts and emoji', () => {
  const lines = String(
    formatTable(
      ['NAME', 'X'],
      [
        ['東京', 'a'],
        ['👍🏽', 'b'],
        ['e\u0301', 'c'],
        ['Größe', 'd'],
      ],
    ),
  ).split('\n');
  assert.deepEqual(lines, ['NAME   X', '東京   a', '👍🏽     b', 'e\u0301      c', 'Größe  d']);
});

test('formats relative times', () => {
  const now = Date.parse('2026-01-01T12:00:00Z');
  assert.equal(relativeTime('2026-01-01T11:59:30Z', now), '30 s ago');
  assert.equal(relativeTime('2026-01-01T12:30:00Z', now), 'in 30 min');
  assert.equal(relativeTime('2026-01-01T03:00:00Z', now), '9 h ago');
  assert.equal(relativeTime('2025-12-25T12:00:00Z', now), '7 days ago');
});

test('prints labelled lines if columns do not fit', () => {
  const table = formatTable(
    ['ID', 'LISTEN', 'REMOTE', 'PATH'],
    [['a1b2', '127.0.0.1:4000', '東京東京', '-']],
    'none',
    () => 'above',
  );
  assert.equal(table.within(40), 'ID    LISTEN          REMOTE    PATH\nabove\na1b2  127.0.0.1:4000  東京東京  -');
  assert.equal(table.within(35), 'above\na1b2\n  listen: 127.0.0.1:4000\n  remote: 東京東京');
  assert.equal(formatTable(['A'], [], 'none').within(35), 'none');
});

test('wraps long values and lists with indentation', () => {
  const fields = formatFields({ 'listens on': '127.0.0.1:2121, 127.0.0.1:4121, [::1]:4121', two: ['one', 'other'] });
  assert.equal(
    fields.within(40),
    'listens on: 127.0.0.1:2121,\n            127.0.0.1:4121, [::1]:4121\ntwo:        one\n            other',
  );
  assert.equal(String(formatFields({ none: [], empty: '', a: 1 })), 'a: 1');
});
