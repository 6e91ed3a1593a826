/**
 * Puts real defects of the past back, each into a copy of the sources, and runs seeds until a checker notices. A guarantee
 * that the present sources break with the same seed does not count.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Outcome, simulate, splitOptions } from './runs.ts';

const ROOT: string = join(import.meta.dirname, '..');
const DEFECTS: string = join(import.meta.dirname, 'defects');
const COPIED = ['src', 'sim', 'test/support', 'package.json', 'tsconfig.json'];

/** The first line of progress of a simulation. */
const BEGUN = /^\d+ s: /;

interface Defect {
  /** A file of this folder. */
  readonly patch: string;
  /** The commit that fixed it. */
  readonly fixedBy: string;
  readonly cause: string;
  /** Options of the simulations that look for it. */
  readonly options: string;
  /** Why no simulation finds it. */
  readonly unseen?: string;
}

interface Search {
  readonly defect: Defect;
  readonly seconds: number;
  readonly seed: number | null;
  readonly guarantees: readonly string[];
}

class Hunt {
  readonly #seeds: number;
  readonly #maxSeconds: number;
  readonly #clean = new Map<string, Promise<Outcome>>();

  constructor(seeds: number, maxSeconds: number) {
    this.#seeds = seeds;
    this.#maxSeconds = maxSeconds;
  }

  async search(defect: Defect): Promise<Search> {
    const directory = mkdtempSync(join(tmpdir(), 'svcd-defect-'));
    try {
      for (const path of COPIED) cpSync(join(ROOT, path), join(directory, path), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
      execFileSync('git', ['apply', join(DEFECTS, defect.patch)], { cwd: directory });
      return await this.#searchIn(directory, defect);
    } finally {
      rmSync(directory, { recursive: true });
    }
  }

  async #searchIn(directory: string, defect: Defect): Promise<Search> {
    let seconds = 0;
    for (let seed = 1; seed <= this.#seeds && seconds < this.#maxSeconds; seed++) {
      const args = [...splitOptions(defect.options), '--seed', `${seed}`];
      const outcome = await simulate(directory, args, (this.#maxSeconds - seconds) * 1000);
      seconds += outcome.seconds;
      if (outcome.guarantees.length === 0) continue;
      // A patch that the sources have outgrown would otherwise count as found.
      if (!outcome.timeline.some((line) => BEGUN.test(line)))
        throw new Error(`${defect.patch}: the simulation does not begin:\n${outcome.timeline.join('\n')}`);
      const clean = await this.#cleanRun(args);
      const guarantees = outcome.guarantees.filter((one) => !clean.guarantees.includes(one));
      if (guarantees.length > 0) return { defect, seconds, seed, guarantees };
    }
    return { defect, seconds, seed: null, guarantees: [] };
  }

  #cleanRun(args: readonly string[]): Promise<Outcome> {
    const name = args.join(' ');
    const known = this.#clean.get(name) ?? simulate(ROOT, args);
    this.#clean.set(name, known);
    return known;
  }
}

export async function main(): Promise<void> {
  const { values } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      seeds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '180' },
      jobs: { type: 'string', default: '2' },
    },
  });
  const all = JSON.parse(readFileSync(join(DEFECTS, 'list.json'), 'utf8')) as Defect[];
  const names = values.only.split(',');
  const queue = all.filter(({ patch }) => values.only === '' || names.includes(patch.replace('.patch', '')));
  const hunt = new Hunt(Number(values.seeds), Number(values.seconds));
  const count = queue.length;
  const begunAt = performance.now();
  let found = 0;
  const work = async (): Promise<void> => {
    for (let defect = queue.shift(); defect !== undefined; defect = queue.shift()) {
      const { seed, seconds, guarantees } = await hunt.search(defect);
      if (seed !== null) found++;
      const result = seed === null ? 'NOT FOUND' : `seed ${seed}: ${guarantees.join('; ')}`;
      console.log(`${defect.patch.padEnd(36)} ${defect.fixedBy}  ${seconds.toFixed(0).padStart(4)} s  ${result}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  console.log(`${found} of ${count} defects found in ${((performance.now() - begunAt) / 60_000).toFixed(1)} minutes`);
}
