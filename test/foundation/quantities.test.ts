import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countText, sizeText, timeText } from '../../src/foundation/display-text.ts';

test('uses the largest unit that gives a whole number', () => {
  const cases: [string, string][] = [
    [countText(10_000), '10,000'],
    [sizeText(0), '0 bytes'],
    [sizeText(1000), '1,000 bytes'],
    [sizeText(1024), '1 KiB'],
    [sizeText(1025), '1,025 bytes'],
    [sizeText(64 * 1024), '64 KiB'],
    [sizeText(3 * 1024 ** 3), '3 GiB'],
    [timeText(250), '250 ms'],
    [timeText(90_000), '90 s'],
    [timeText(60_000), '1 min'],
    [timeText(86_400_000), '24 h'],
    [timeText(7 * 86_400_000), '7 days'],
  ];
  for (const [text, expected] of cases) assert.equal(text, expected);
});
