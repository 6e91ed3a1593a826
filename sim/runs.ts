/** Runs simulations as child processes, and reads their figures. */
import { spawn } from 'node:child_process';
import type { WorldFigures } from './world.ts';

/** Longest run of a simulation, milliseconds. */
const MAX_RUN_MS = 600_000;

export interface Outcome {
  /** Guarantees that were broken, the first one first. A process that ends without figures breaks one too. */
  readonly guarantees: readonly string[];
  readonly figures: Partial<WorldFigures> | null;
  /** Seconds of real time. */
  readonly seconds: number;
  readonly timeline: readonly string[];
}

/** Splits options as `list.json` and `seeds.json` have them. A value may contain spaces. */
export function splitOptions(text: string): string[] {
  return text.split(/ (?=--)/).flatMap((option) => option.match(/^(\S+) (.+)$/)?.slice(1) ?? [option]);
}

/**
 * Runs `npm run sim` in a directory.
 * @param args its options
 * @param maxMs ends it after this time; it has no figures then
 */
export function simulate(directory: string, args: readonly string[], maxMs: number = MAX_RUN_MS): Promise<Outcome> {
  const begunAt = performance.now();
  const child = spawn(process.execPath, ['sim/run.ts', ...args], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => void (output[name] += text));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, maxMs);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      const figures = figuresOf(output.stdout);
      const failure = code === 0 || isLate ? [] : [figures === null ? 'simulations end' : 'look-ups succeed'];
      const broken = figures?.violations?.map(({ guarantee }) => guarantee) ?? failure;
      const seconds = (performance.now() - begunAt) / 1000;
      resolve({ guarantees: [...new Set(broken)], figures, seconds, timeline: output.stderr.split('\n') });
    });
  });
}

function figuresOf(text: string): Partial<WorldFigures> | null {
  try {
    return JSON.parse(text.slice(text.indexOf('{'))) as Partial<WorldFigures>;
  } catch {
    return null;
  }
}
