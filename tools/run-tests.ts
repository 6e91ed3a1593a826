/**
 * Runs the tests: unit and integration tests with coverage, then the end-to-end tests, which start
 * real daemons. `node tools/run-tests.ts <pattern …>` runs only what is named, without coverage.
 * The programs are built before, so that no test waits for it.
 */
import { spawnSync } from 'node:child_process';

/** Test files at a time: more would only wait for each other on two cores. */
const CONCURRENCY = 2;
/** Lines that the unit and integration tests must reach, percent. */
const MIN_LINE_COVERAGE = 85;

const UNIT = 'test/{foundation,network,capabilities,operations,surfaces,daemon,tools,fuzz}/**/*.test.ts';
const END_TO_END = 'test/e2e/**/*.test.ts';
const COVERAGE = [
  '--experimental-test-coverage',
  '--test-coverage-include=src/**',
  `--test-coverage-lines=${MIN_LINE_COVERAGE}`,
];

function run(patterns: readonly string[], options: readonly string[] = []): void {
  const args = ['--test', `--test-concurrency=${CONCURRENCY}`, ...options, ...patterns];
  const { status, signal } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (signal !== null) console.error(`the tests were ended by ${signal}`);
  if (status !== 0) process.exit(status ?? 1);
}

const { status } = spawnSync(process.execPath, ['bin/svc', '--version'], { stdio: ['ignore', 'ignore', 'inherit'] });
if (status !== 0) process.exit(status ?? 1);
const named = process.argv.slice(2);
if (named.length > 0) run(named);
else {
  run([UNIT], COVERAGE);
  run([END_TO_END]);
}
