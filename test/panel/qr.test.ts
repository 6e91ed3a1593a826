import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { qrOf } from '../../panel/src/lib/qr.ts';

/** SHA-256 of the modules as `#` and blanks, line by line: what uqr makes at level M with mask 0, without a border. */
const KNOWN: readonly (readonly [string, number, string])[] = [
  ['a', 21, '9ca89d439748e0c78021efb841c46eb3c78f63da4c567f3de54bcc5da4451d9f'],
  ['x'.repeat(62), 33, '9f82c98a96df77754bb3cfcbe8be25df61d6bc9a0aba997f6c3c69e785d1dd0f'],
  ['ab'.repeat(32), 37, '1b7cdc8e03af04422d547ee2b42a06d4c3c35d7416952a665987df507416997b'],
  ['x'.repeat(106), 41, 'f019482edb4654b965a17edf25e00e0b4e01a139dfad275da02d600a68b16f0c'],
];

test('a QR code is the one that another encoder makes', () => {
  for (const [text, size, hash] of KNOWN) {
    const rows = qrOf(text);
    assert.equal(rows.length, size);
    const drawn = rows.map((row) => row.map((isDark) => (isDark ? '#' : ' ')).join('')).join('\n');
    assert.equal(createHash('sha256').update(drawn).digest('hex'), hash, text);
  }
});

test('a text without room in a small QR code is refused', () => {
  assert.throws(() => qrOf('x'.repeat(107)), RangeError);
});
