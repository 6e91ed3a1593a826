/**
 * Runs the tests. `node tools/run-tests.ts <pattern …>` runs matching files, each in its own process, and shows every
 * test. Without patterns it runs all tests as jobs of one or more files (see `test-run/plan.ts`), shows progress and
 * failures, and lists the slowest files and the skipped tests at the end. Each job starts in its own process group. A job
 * over its time limit is killed with its child processes and counts as failed.
 *
 * `--together` runs the named files in one process, as jobs do.
 */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runGroup } from './test-group.ts';
import { allTestFiles, planJobs } from './test-run/plan.ts';
import { runJobs } from './test-run/run.ts';

/** Test files that run in parallel if they are named. */
const NAMED_FILES = 2;
/** Time limit of a named file or a process that it leaves behind, milliseconds. */
const FILE_LIMIT_MS = 600_000;
const REPORTERS = ['spec', './tools/skipped-tests.ts'].flatMap((reporter) => [
  `--test-reporter=${reporter}`,
  '--test-reporter-destination=stdout',
]);

async function runNamed(patterns: readonly string[]): Promise<boolean> {
  const code = await runGroup({
    program: process.execPath,
    args: ['--test', `--test-concurrency=${NAMED_FILES}`, ...REPORTERS, ...patterns],
    limitMs: FILE_LIMIT_MS,
    onKilled: (command) => console.error(`killed after ${FILE_LIMIT_MS / 60_000} minutes: ${command}`),
  });
  return code === 0;
}

async function runTogether(patterns: readonly string[]): Promise<boolean> {
  const files = patterns.flatMap((pattern) => globSync(pattern));
  const args = ['--test', '--test-isolation=none', ...REPORTERS, ...files];
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status === 0;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { together: { type: 'boolean' } } });
// The programs that end-to-end tests start.
const { status } = spawnSync(process.execPath, ['bin/svc', '--version'], { stdio: ['ignore', 'ignore', 'inherit'] });
if (status !== 0) process.exit(status ?? 1);
const isPassed =
  positionals.length === 0
    ? await runJobs(planJobs(allTestFiles()))
    : values.together === true
      ? await runTogether(positionals)
      : await runNamed(positionals);
process.exit(isPassed ? 0 : 1);
