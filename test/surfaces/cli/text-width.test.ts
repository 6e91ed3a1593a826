import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textWidth } from '../../../src/surfaces/cli/text.ts';

/** Texts and their width in terminal columns. */
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

test('measures text in terminal columns for all scripts', () => {
  for (const [text, width] of TEXTS) assert.equal(textWidth(text), width, JSON.stringify(text));
});
