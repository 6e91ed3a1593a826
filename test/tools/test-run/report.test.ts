import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestEvent } from '../../../tools/test-run/events.ts';
import type { JobResult } from '../../../tools/test-run/job.ts';
import { failedJobs, progressLine, skippedTests, slowest } from '../../../tools/test-run/report.ts';

const event = (name: string, more: Partial<TestEvent> = {}): TestEvent => ({
  ...{ passed: true, name, file: null, isTopLevel: true, took: 1, skipped: null },
  ...more,
});

function result(files: readonly string[], more: Partial<JobResult> = {}): JobResult {
  const job = { name: files[0] ?? '', files, isEndToEnd: false };
  return { job, passed: true, tests: [], seconds: new Map(), took: 1, output: '', ...more };
}

test('a run of tests reports counts and an estimate', () => {
  const state = { files: 10, passed: 200, failed: 1, done: 0.25 };
  assert.equal(progressLine(state, 40, 60), '10 of 40 files, 200 tests passed, 1 failed, about 3 min left');
  assert.equal(progressLine(state, 10, 60), '10 of 10 files, 200 tests passed, 1 failed');
  assert.equal(progressLine({ ...state, files: 0, done: 0 }, 40, 0), '0 of 40 files, 200 tests passed, 1 failed');
});

test('the slowest ten files are listed', () => {
  const files = Array.from({ length: 12 }, (_, i): [string, number] => [`test/${i}.test.ts`, i]);
  const lines = slowest([
    result([], { seconds: new Map(files.slice(0, 6)) }),
    result([], { seconds: new Map(files.slice(6)) }),
  ]);
  assert.equal(lines.length, 10);
  assert.deepEqual([lines[0], lines[9]], ['   11.0 s  test/11.test.ts', '    2.0 s  test/2.test.ts']);
});

test('skipped tests are listed by reason', () => {
  const tests = [
    event('a', { skipped: 'needs x' }),
    event('b'),
    event('c', { skipped: 'needs x' }),
    event('d', { skipped: '' }),
  ];
  assert.deepEqual(skippedTests(tests), ['  needs x', '    - a', '    - c', '  no reason given', '    - d']);
});

test('failed jobs are listed with a command that repeats them', () => {
  const tests = [event('works'), event('breaks', { passed: false })];
  const results = [
    result(['test/a/x.test.ts'], { passed: false, tests }),
    result(['test/b/x.test.ts', 'test/b/y.test.ts'], { passed: false }),
    result(['test/c/x.test.ts']),
  ];
  assert.deepEqual(failedJobs(results), [
    '  node tools/run-tests.ts test/a/x.test.ts',
    '    - breaks',
    "  node tools/run-tests.ts --together 'test/b/*.test.ts'",
    '    the process failed',
  ]);
});
