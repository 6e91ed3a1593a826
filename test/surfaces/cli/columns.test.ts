import assert from 'node:assert/strict';
import { test } from 'node:test';
import { columns } from '../../../src/surfaces/cli/columns.ts';

/** Texts and the columns that terminals give them. */
const TEXTS: readonly (readonly [string, number])[] = [
  ['', 0],
  ['plain ~', 7],
  ['Größe', 5],
  ['e\u0301', 1],
  ['\u200B\u2060', 0],
  ['東京', 4],
  ['한국어', 6],
  ['\u1100\u1161\u11A8', 2],
  ['ｱ', 1],
  ['Ａ（）、。', 10],
  ['·ˇ', 2],
  ['★', 1],
  ['👍🏽', 2],
  ['👩‍👩‍👧', 2],
  ['🇩🇪', 2],
  ['1️⃣', 2],
  ['☺️', 2],
  ['❤', 1],
  ['नमस्ते', 3],
];

test('a text takes the columns that a terminal gives it, whatever its script', () => {
  for (const [text, width] of TEXTS) assert.equal(columns(text), width, JSON.stringify(text));
});
