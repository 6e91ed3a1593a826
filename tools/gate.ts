/**
 * `npm test`: static checks, tests, faults planted in the sources, and fresh seeds of the simulator. Fresh seeds and
 * planted faults use the time that the tests leave, and are joined at the end.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import { runChecks } from './check.ts';
import { runJob } from './test-run/job.ts';
import { allTestFiles, FRESH_SEEDS, planJobs } from './test-run/plan.ts';
import { runJobs, scratchFolders } from './test-run/run.ts';

/** Niceness of the simulations, which use the time that the tests leave. */
const LOWEST_PRIORITY = 19;

function minutesSince(begunAt: number): string {
  return `${((performance.now() - begunAt) / 60_000).toFixed(1)} min`;
}

/** Plants faults. @returns the output, and whether enough of them were noticed */
async function plantFaults(): Promise<{ readonly output: string; readonly passed: boolean }> {
  const args = ['tools/mutants.ts', '--gate'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.pid !== undefined) setPriority(child.pid, LOWEST_PRIORITY);
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { output, passed: code === 0 };
}

const begunAt = performance.now();
const folders = scratchFolders();
const freshSeeds = runJob(
  { name: FRESH_SEEDS, files: [FRESH_SEEDS], isEndToEnd: false },
  { ...folders, nice: LOWEST_PRIORITY },
);
let isPassed = await runChecks();
console.log(`static checks: ${minutesSince(begunAt)}`);
// Later steps report nothing useful about sources that do not compile.
if (!isPassed) process.exit(1);
const planted = plantFaults();
isPassed = await runJobs(planJobs(allTestFiles()), folders);
console.log(`\nchecks and tests: ${minutesSince(begunAt)}`);
const seeds = await freshSeeds;
if (!seeds.passed) console.log(seeds.output);
console.log(`${seeds.passed ? '✔' : '✖'} fresh seeds of the simulator (${minutesSince(begunAt)})`);
const mutants = await planted;
console.log(`\n${mutants.output}\nall: ${minutesSince(begunAt)}`);
process.exit(isPassed && seeds.passed && mutants.passed ? 0 : 1);
