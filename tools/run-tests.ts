/**
 * Runs unit and integration tests with coverage, then the end-to-end tests, which start real daemons. `node
 * tools/run-tests.ts <pattern …>` runs only matching files, without coverage. The programs are built first. A file over
 * its time limit is killed with its child processes and counts as failed. Skipped tests are listed at the end with the
 * reason.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runGroup } from './test-group.ts';

/**
 * Test files in parallel. The machine is assumed to have two cores. Unit tests wait for a quarter of the time; end-to-end
 * tests, which run several processes each, hardly.
 */
const UNIT_FILES = 3;
const END_TO_END_FILES = 2;
/** Line coverage that unit and integration tests must reach, percent. */
const MIN_LINE_COVERAGE = 85;

const UNIT = 'test/{foundation,network,capabilities,operations,surfaces,panel,daemon,tools,fuzz,sim}/**/*.test.ts';
const END_TO_END = 'test/e2e/**/*.test.ts';
const COVERAGE = [
  '--experimental-test-coverage',
  '--test-coverage-include=src/**',
  `--test-coverage-lines=${MIN_LINE_COVERAGE}`,
];

/** Time limit of a test file or a process that it leaves behind, milliseconds. Several times the usual maximum. */
const FILE_LIMIT_MS = 600_000;
const REPORTERS = ['spec', './tools/test-progress.ts', './tools/skipped-tests.ts'].flatMap((reporter) => [
  `--test-reporter=${reporter}`,
  '--test-reporter-destination=stdout',
]);

async function run(
  patterns: readonly string[],
  files: number,
  options: readonly string[] = [],
  more: NodeJS.ProcessEnv = {},
): Promise<void> {
  const code = await runGroup({
    program: process.execPath,
    args: ['--test', `--test-concurrency=${files}`, ...REPORTERS, ...options, ...patterns],
    environment: { ...process.env, ...more, TEST_FILES: String(globSync([...patterns]).length) },
    limitMs: FILE_LIMIT_MS,
    onKilled: (command) => console.error(`killed after ${FILE_LIMIT_MS / 60_000} minutes: ${command}`),
  });
  if (code !== 0) process.exit(code);
}

const { status } = spawnSync(process.execPath, ['bin/svc', '--version'], { stdio: ['ignore', 'ignore', 'inherit'] });
if (status !== 0) process.exit(status ?? 1);
const named = process.argv.slice(2);
if (named.length > 0) await run(named, END_TO_END_FILES);
else {
  // Each file runs in its own process. Compiling the same modules again would take a third of the time.
  const compiled = mkdtempSync(join(tmpdir(), 'svcd-compiled-'));
  process.once('exit', () => rmSync(compiled, { recursive: true, force: true }));
  await run([UNIT], UNIT_FILES, COVERAGE, { NODE_COMPILE_CACHE: compiled });
  await run([END_TO_END], END_TO_END_FILES);
}
