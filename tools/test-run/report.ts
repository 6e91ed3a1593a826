/** The texts that a run of the tests prints. */
import type { TestEvent } from './events.ts';
import type { JobResult } from './job.ts';

/** Slowest files that are listed. */
const SLOWEST = 10;

/** The state of a run. */
export interface Progress {
  /** Ended files. */
  readonly files: number;
  /** Passed tests. */
  readonly passed: number;
  /** Failed jobs. */
  readonly failed: number;
  /** Ended share of the work, 0 to 1. */
  readonly done: number;
}

/** One line about the state of a run. @param elapsed seconds */
export function progressLine({ files, passed, failed, done }: Progress, total: number, elapsed: number): string {
  const counts = `${files} of ${total} files, ${passed} tests passed, ${failed} failed`;
  if (files === 0 || files >= total) return counts;
  return `${counts}, about ${Math.ceil(((elapsed / done) * (1 - done)) / 60)} min left`;
}

/** The files that took longest. */
export function slowest(results: readonly JobResult[]): string[] {
  const files = results.flatMap(({ seconds }) => [...seconds]);
  const first = files.toSorted(([, a], [, b]) => b - a).slice(0, SLOWEST);
  return first.map(([file, seconds]) => `${seconds.toFixed(1).padStart(7)} s  ${file}`);
}

/** Skipped tests by reason. */
export function skippedTests(tests: readonly TestEvent[]): string[] {
  const skipped = tests.filter((one) => one.skipped !== null);
  const byReason = Map.groupBy(skipped, (one) => one.skipped || 'no reason given');
  return [...byReason].flatMap(([reason, all]) => [`  ${reason}`, ...all.map(({ name }) => `    - ${name}`)]);
}

/** Failed jobs, each with a command that repeats it. */
export function failedJobs(results: readonly JobResult[]): string[] {
  return results
    .filter(({ passed }) => !passed)
    .flatMap(({ job: { files }, tests }) => {
      const failed = tests.filter((one) => !one.passed).map(({ name }) => `    - ${name}`);
      const [first = ''] = files;
      const together = files.length > 1 ? `--together '${first.slice(0, first.lastIndexOf('/'))}/*.test.ts'` : first;
      return [`  node tools/run-tests.ts ${together}`, ...(failed.length > 0 ? failed : ['    the process failed'])];
    });
}
