/** Simulations of complete nodes, each in its own process. */
import assert from 'node:assert/strict';
import { type Output, run } from './programs.ts';

interface Figures {
  readonly eventHash: string;
  /** Of the whole run. */
  readonly cpuSeconds: number;
  readonly users: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** The number of faults of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: readonly { readonly guarantee: string; readonly text: string }[];
}

/** Options of a simulation of a few seconds. */
export const SMALL_WORLD = '--nodes 4 --days 0.01 --actions 60 --pause 5 --healing 15'.split(' ');

/** Runs `sim/run.ts`. */
export async function simulate(options: readonly string[]): Promise<Output> {
  return await run(process.execPath, ['sim/run.ts', ...options]);
}

/** Asserts that a simulation breaks no guarantee. */
export async function assertHolds(options: readonly string[]): Promise<Figures> {
  const { stdout, stderr, code } = await simulate(options);
  let figures: Figures;
  try {
    figures = JSON.parse(stdout);
  } catch {
    throw new Error(`npm run sim -- ${options.join(' ')}: exit code ${code}\n${stderr}`);
  }
  assert.deepEqual(figures.violations, [], `npm run sim -- ${options.join(' ')} --timeline`);
  return figures;
}
