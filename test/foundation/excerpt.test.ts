import assert from 'node:assert/strict';
import { test } from 'node:test';
import { excerpt, MAX_EXCERPT_CHARS } from '../../src/foundation/display-text.ts';

test('the beginning of a text has whole characters', () => {
  assert.equal(excerpt('short'), 'short');
  assert.equal(excerpt('x'.repeat(1000)), 'x'.repeat(MAX_EXCERPT_CHARS));
  assert.equal(excerpt('😀'.repeat(1000)), '😀'.repeat(MAX_EXCERPT_CHARS));
  assert.equal(excerpt(`x${'😀'.repeat(1000)}`), `x${'😀'.repeat(MAX_EXCERPT_CHARS - 1)}`);
});
