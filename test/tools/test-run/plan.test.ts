import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProcessState, planJobs } from '../../../tools/test-run/plan.ts';

const TEXTS: Readonly<Record<string, string>> = {
  'test/a/env.test.ts': "process.env['X'] = '1';",
  'test/a/spawns.test.ts': "import { run } from '../support/run.ts';\n",
  'test/a/by-source.test.ts': "import { run } from '../../src/run.ts';\n",
  'test/a/own-wish.test.ts': '// Runs alone: it measures memory.\n',
  'test/support/run.ts': "import { spawn } from 'node:child_process';\n",
  'src/run.ts': "import { spawn } from 'node:child_process';\n",
};
const plain = (folder: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `test/${folder}/plain${i}.test.ts`);
const state = (): ProcessState => new ProcessState((file) => TEXTS[file] ?? '');

test('the files of a folder share a process, unless a file or its helper touches the state of the process', () => {
  const unit = [...plain('a', 4), ...Object.keys(TEXTS).filter((file) => file.endsWith('.test.ts'))];
  const jobs = planJobs({ unit, endToEnd: [] }, state());
  assert.deepEqual(
    jobs.map(({ files }) => files),
    [
      [...plain('a', 4), 'test/a/by-source.test.ts'],
      ['test/a/env.test.ts'],
      ['test/a/spawns.test.ts'],
      ['test/a/own-wish.test.ts'],
    ],
  );
});

test('small folders share a process with other small folders of their parent', () => {
  const unit = [...plain('a/b', 1), ...plain('a/c', 2), ...plain('a/d', 4)];
  const jobs = planJobs({ unit, endToEnd: [] }, state());
  assert.deepEqual(
    jobs.map(({ files }) => files),
    [plain('a/d', 4), [...plain('a/b', 1), ...plain('a/c', 2)]],
  );
});

test('simulations and end-to-end tests, each in its own process, start before others', () => {
  const jobs = planJobs({ unit: [...plain('a', 4), 'test/sim/x.test.ts'], endToEnd: ['test/e2e/y.test.ts'] }, state());
  assert.deepEqual(
    jobs.map(({ files: [first], isEndToEnd }) => [first, isEndToEnd]),
    [
      ['test/sim/x.test.ts', false],
      ['test/e2e/y.test.ts', true],
      ['test/a/plain0.test.ts', false],
    ],
  );
});
