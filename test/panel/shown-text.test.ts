import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownText } from '../../panel/src/lib/shown-text.ts';

test('invisible characters are escaped, and runs without a line break are cut off', () => {
  assert.equal(shownText('a\u202eb'), 'a\\u202eb');
  assert.equal(shownText(`e${'\u0301'.repeat(300)}x`), `e${'\u0301'.repeat(8)}…x`);
  assert.equal(shownText(`a${'\u00a0'.repeat(500)}b`), `a${'\u00a0'.repeat(8)}…b`);
  const vowels = 'בְּרֵאשִׁית ที่นี่';
  assert.equal(shownText(vowels), vowels);
});
