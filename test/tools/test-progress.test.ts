import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressLine } from '../../tools/test-progress.ts';

test('a run of tests reports counts and an estimate', () => {
  const state = { files: 10, passed: 200, failed: 1 };
  assert.equal(progressLine(state, 40, 60_000), '10 of 40 files, 200 tests passed, 1 failed, about 3 min left');
  assert.equal(progressLine(state, 10, 60_000), '10 of 10 files, 200 tests passed, 1 failed');
  assert.equal(progressLine(state, 0, 60_000), '10 files, 200 tests passed, 1 failed');
  assert.equal(progressLine({ ...state, files: 0 }, 40, 0), '0 of 40 files, 200 tests passed, 1 failed');
});
