/** Runs jobs in parallel, and prints progress, failures and a summary. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobOptions, type JobResult, runJob } from './job.ts';
import { isSlow, type Job } from './plan.ts';
import { failedJobs, progressLine, skippedTests, slowest } from './report.ts';

/** Jobs in parallel beyond the number of cores: some tests wait for timers and processes most of the time. */
const EXTRA_JOBS = 2;
/** End-to-end tests in parallel. Each runs several processes, which wait half of the time. */
const END_TO_END_JOBS = 3;
/** Interval between lines about the progress, milliseconds. */
const PROGRESS_MS = 30_000;

/** Temporary folders of a run, which are removed when this process exits. */
export function scratchFolders(): Pick<JobOptions, 'scratch' | 'compiled'> {
  const scratch = mkdtempSync(join(tmpdir(), 'svcd-tests-'));
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));
  const compiled = join(scratch, 'compiled');
  mkdirSync(compiled);
  return { scratch, compiled };
}

/** Usual time of a test file that runs processes or simulations, in multiples of another one. */
const SLOW_FILE = 8;

function filesOf({ files }: Job): number {
  return files.length;
}

function workOf(job: Job): number {
  return job.files.length * (isSlow(job) ? SLOW_FILE : 1);
}

function totalOf(jobs: readonly Job[], of: (job: Job) => number): number {
  return jobs.reduce((sum, job) => sum + of(job), 0);
}

function print({ job: { name, files }, passed, tests, took, output }: JobResult): void {
  const count = files.length > 1 ? `${files.length} files, ${tests.length} tests` : `${tests.length} tests`;
  console.log(`${passed ? '✔' : '✖'} ${took.toFixed(1).padStart(6)} s  ${name} (${count})`);
  if (!passed) console.log(output);
}

/** Runs jobs and prints their results. @returns whether all passed */
export async function runJobs(
  jobs: readonly Job[],
  folders: Pick<JobOptions, 'scratch' | 'compiled'> = scratchFolders(),
): Promise<boolean> {
  const waiting = [...jobs];
  const results: JobResult[] = [];
  const [total, work] = [totalOf(jobs, filesOf), totalOf(jobs, workOf)];
  const begunAt = performance.now();
  let endToEnd = 0;
  const showProgress = (): void => {
    const ended = results.map(({ job }) => job);
    const tests = results.flatMap((result) => result.tests);
    const passed = tests.filter((one) => one.passed).length;
    const state = {
      files: totalOf(ended, filesOf),
      passed,
      failed: results.filter((result) => !result.passed).length,
      done: totalOf(ended, workOf) / work,
    };
    console.log(`[${progressLine(state, total, (performance.now() - begunAt) / 1000)}]`);
  };
  const next = (): Job | undefined => {
    const at = waiting.findIndex(({ isEndToEnd }) => !isEndToEnd || endToEnd < END_TO_END_JOBS);
    return at < 0 ? undefined : waiting.splice(at, 1)[0];
  };
  const worker = async (): Promise<void> => {
    for (let job = next(); job !== undefined; job = next()) {
      if (job.isEndToEnd) endToEnd++;
      const result = await runJob(job, folders);
      if (job.isEndToEnd) endToEnd--;
      results.push(result);
      print(result);
    }
  };
  const timer = setInterval(showProgress, PROGRESS_MS);
  await Promise.all(Array.from({ length: availableParallelism() + EXTRA_JOBS }, worker));
  clearInterval(timer);
  showProgress();
  const skipped = skippedTests(results.flatMap((result) => result.tests));
  const failed = failedJobs(results);
  console.log(`\nThe slowest files:\n${slowest(results).join('\n')}`);
  if (skipped.length > 0) console.log(`\nSkipped (.ci/run installs what a bare Debian lacks):\n${skipped.join('\n')}`);
  if (failed.length > 0) console.log(`\nFailed:\n${failed.join('\n')}`);
  return failed.length === 0;
}
