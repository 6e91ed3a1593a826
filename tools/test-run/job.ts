/** Runs one job: a process with one or more test files. */
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runGroup } from '../test-group.ts';
import type { TestEvent } from './events.ts';
import type { Job } from './plan.ts';

/** Time limit of a job or a process that it leaves behind, milliseconds. Several times the usual maximum. */
const JOB_LIMIT_MS = 600_000;
/** Time limit of a job of low priority, which waits for all other jobs, milliseconds. */
const BACKGROUND_LIMIT_MS = 10_800_000;
const REPORTER = join(import.meta.dirname, 'events.ts');
const PRELOAD = join(import.meta.dirname, 'compile-cache.ts');

export interface JobOptions {
  /** A folder for its output. */
  readonly scratch: string;
  /** A folder for compiled code, which all jobs share. */
  readonly compiled: string;
  /** Niceness, 0 to 19. */
  readonly nice?: number;
  readonly environment?: NodeJS.ProcessEnv;
}

export interface JobResult {
  readonly job: Job;
  readonly passed: boolean;
  readonly tests: readonly TestEvent[];
  /** Seconds by file. In a shared process: the sum of its tests. */
  readonly seconds: ReadonlyMap<string, number>;
  /** Seconds from start to end. */
  readonly took: number;
  /** The output of the process. */
  readonly output: string;
}

function parseEvents(path: string): TestEvent[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as TestEvent] : []));
  } catch {
    return [];
  }
}

function secondsOf({ files }: Job, tests: readonly TestEvent[], took: number): Map<string, number> {
  const [only] = files;
  if (only !== undefined && files.length === 1) return new Map([[only, took]]);
  const seconds = new Map<string, number>();
  for (const { file, isTopLevel, took: ms } of tests) {
    if (file === null || !isTopLevel) continue;
    const name = relative(process.cwd(), file).replaceAll('\\', '/');
    seconds.set(name, (seconds.get(name) ?? 0) + ms / 1000);
  }
  return seconds;
}

let jobs = 0;

/** Runs a job, and ends the processes that it leaves behind. */
export async function runJob(job: Job, { scratch, compiled, nice = 0, environment }: JobOptions): Promise<JobResult> {
  const limitMs = nice > 0 ? BACKGROUND_LIMIT_MS : JOB_LIMIT_MS;
  const number = ++jobs;
  const [events, written] = [join(scratch, `${number}.json`), join(scratch, `${number}.txt`)];
  const reporters = [
    `--test-reporter=${REPORTER}`,
    `--test-reporter-destination=${events}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
  ];
  const together = job.files.length > 1 ? ['--test', '--test-isolation=none'] : [];
  // The daemons of end-to-end tests run as users run them, so only the test's own modules come from the cache.
  const cache = job.isEndToEnd ? [`--import=${PRELOAD}`] : [];
  const shared = job.isEndToEnd ? { SVCD_TEST_COMPILED: compiled } : { NODE_COMPILE_CACHE: compiled };
  const output = openSync(written, 'w');
  const begunAt = performance.now();
  const killed: string[] = [];
  const code = await runGroup({
    program: process.execPath,
    args: [...together, ...cache, ...reporters, ...job.files],
    environment: { ...process.env, NODE_TEST_CONTEXT: undefined, ...shared, ...environment },
    stdio: ['ignore', output, output],
    nice,
    limitMs,
    limitsProgram: true,
    onKilled: (command) => killed.push(`killed after ${limitMs / 60_000} minutes: ${command}\n`),
  });
  const took = (performance.now() - begunAt) / 1000;
  closeSync(output);
  const tests = parseEvents(events);
  const passed = code === 0 && killed.length === 0 && tests.every((one) => one.passed);
  const text = `${readFileSync(written, 'utf8')}${killed.join('')}`;
  for (const file of [events, written]) rmSync(file, { force: true });
  return { job, passed, tests, seconds: secondsOf(job, tests, took), took, output: text };
}
