/**
 * `npm run test:busy`: runs a sample of the test files several times while other processes use the processor. A test that fails here
 * depends on the speed of the machine. The same seed and files give the same sample.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { Random } from '../test/support/random.ts';
import { allTestFiles, planJobs } from './test-run/plan.ts';
import { runJobs, scratchFolders } from './test-run/run.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    files: { type: 'string', default: '60' },
    times: { type: 'string', default: '3' },
    processes: { type: 'string', default: '8' },
  },
});
const [seed, count, times, processes] = [values.seed, values.files, values.times, values.processes].map(Number) as [
  number,
  number,
  number,
  number,
];
if (![seed, count, times, processes].every((value) => Number.isInteger(value) && value >= 0))
  throw new Error('--seed, --files, --times and --processes need integers.');

const { unit, endToEnd } = allTestFiles();
const random = new Random(seed);
const all = [...unit, ...endToEnd];
const chosen = new Set(
  Array.from({ length: Math.min(count, all.length) }, () => all.splice(random.below(all.length), 1)).flat(),
);
const isChosen = (file: string): boolean => chosen.has(file);
const jobs = planJobs({ unit: unit.filter(isChosen), endToEnd: endToEnd.filter(isChosen) });
const busy: ChildProcess[] = Array.from({ length: processes }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
process.once('exit', () => {
  for (const child of busy) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const folders = scratchFolders();
let isPassed = true;
for (let time = 1; time <= times; time++) {
  console.log(`\n${chosen.size} files beside ${processes} busy processes, ${time} of ${times} (--seed ${seed})`);
  isPassed = (await runJobs(jobs, folders)) && isPassed;
}
process.exit(isPassed ? 0 : 1);
