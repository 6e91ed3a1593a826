/**
 * `npm run mutants [-- options] [folder or file …]`: plants faults in the sources, one at a time, and reports which
 * faults the unit tests of the same folder notice. Runs in copies of the checkout. See docs/decisions/0018.
 */
import { globSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs, styleText } from 'node:util';
import { Random } from '../test/support/random.ts';
import { commitSeed, recentlyChangedFiles } from './changes.ts';
import { isEquivalent } from './mutation/equivalent.ts';
import { type Mutant, mutantsOf } from './mutation/generate.ts';
import { Judge, type JudgeOptions, type Verdict } from './mutation/judge.ts';

interface Result {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
}

const FOLDERS = ['src/foundation', 'src/network', 'src/capabilities', 'src/operations', 'src/surfaces'];
/** Folders in which less than this percentage of faults is noticed are named. */
const ENOUGH_PERCENT = 80;
/** In the gate: number of faults, commits whose folders get faults, test files for each fault. */
const GATE_FAULTS = 20;
const GATE_COMMITS = 20;
const GATE_TESTS = 8;
/**
 * Percentage of faults that must be noticed in the gate. The average is higher, but each commit has another sample, so
 * a worse sample is followed by others, up to this number, and all together decide.
 */
const GATE_MIN_PERCENT = 50;
const MAX_SAMPLES = 3;
const USAGE = `npm run mutants -- [options] [folder or file …]
  Default: ${FOLDERS.join(' ')}
  --count N  number of random faults (100)
  --seed N   the same seed and sources give the same faults (random)
  --jobs N   faults that are tested in parallel (2)
  --min P    exit with 1 if fewer than P percent are noticed (0)
  --gate     as in npm test: ${GATE_FAULTS} faults in the folders that the last ${GATE_COMMITS} commits changed, the same for each
             commit, with the nearest ${GATE_TESTS} test files`;

/** Mutants in a random order, without equivalent ones. */
class ChangingMutants {
  readonly #waiting: Mutant[];
  readonly #sources: ReadonlyMap<string, string>;
  /** Number of mutants that change nothing. */
  equivalent = 0;

  constructor(sources: ReadonlyMap<string, string>, seed: number) {
    this.#sources = sources;
    const all = [...sources].flatMap(([file, source]) => mutantsOf(file, source));
    this.#waiting = sample(all, all.length, seed);
  }

  /** The next ones; fewer at the end. */
  take(count: number): Mutant[] {
    const taken: Mutant[] = [];
    for (let mutant = this.#waiting.shift(); mutant !== undefined; mutant = this.#waiting.shift()) {
      if (isEquivalent(this.#sources.get(mutant.file) ?? '', mutant)) this.equivalent++;
      else taken.push(mutant);
      if (taken.length === count) break;
    }
    return taken;
  }
}

/** The folders of recently changed sources that faults are planted in; all without history. */
function changedFolders(): string[] {
  const files = recentlyChangedFiles(GATE_COMMITS) ?? [];
  const isMutated = (file: string): boolean =>
    file.endsWith('.ts') && FOLDERS.some((one) => file.startsWith(`${one}/`));
  const folders = [...new Set(files.filter(isMutated).map(dirname))].sort();
  return folders.length === 0 ? FOLDERS : folders;
}

/** A random sample of `count` items. The same seed and sources give the same sample. */
export function sample<T>(items: readonly T[], count: number, seed: number): T[] {
  const random = new Random(seed);
  const rest = [...items];
  return Array.from({ length: Math.min(count, rest.length) }, () => rest.splice(random.below(rest.length), 1)).flat();
}

function grouped(results: readonly Result[], group: (file: string) => string): [string, Result[]][] {
  return [...Map.groupBy(results, ({ mutant }) => group(mutant.file))].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** The share of noticed faults per group. */
export function shares(results: readonly Result[], group: (file: string) => string): string[] {
  return grouped(results, group).map(([name, all]) => {
    const [noticed, total] = [countNoticed(all), all.length].map((count) => String(count).padStart(4));
    return `${name.padEnd(36)} ${noticed} of ${total}  ${percent(all).toFixed(0).padStart(3)} %`;
  });
}

/** The groups in which too few faults are noticed. */
export function weakGroups(results: readonly Result[], group: (file: string) => string): string[] {
  return grouped(results, group)
    .filter(([, all]) => percent(all) < ENOUGH_PERCENT)
    .map(([name, all]) => `${name} (${countNoticed(all)} of ${all.length})`);
}

function countNoticed(results: readonly Result[]): number {
  return results.filter(({ verdict }) => verdict !== 'unnoticed').length;
}

function percent(results: readonly Result[]): number {
  return results.length === 0 ? 100 : (100 * countNoticed(results)) / results.length;
}

/** The first `count` folders of a path: 2 is the layer, 3 the folder in it. */
const parts = (count: number) => (file: string) => {
  const folders = file.split('/').slice(0, -1);
  return folders.slice(0, count).join('/');
};

function parseInteger(name: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) throw new Error(`--${name} needs an integer of at least ${least}.`);
  return value;
}

function sourcesIn(root: string, named: readonly string[]): string[] {
  const files = named.flatMap((name) => {
    const path = name.replaceAll('\\', '/').replace(/\/$/, '');
    if (!path.startsWith('src/')) throw new Error(`${name} is not in src/. Name files or folders of src/.`);
    return statSync(join(root, path)).isFile() ? [path] : globSync(`${path}/**/*.ts`, { cwd: root });
  });
  return [...new Set(files)].filter((file) => !file.endsWith('.d.ts')).sort();
}

function show({ mutant, verdict }: Result): string {
  const where = `${mutant.file}:${mutant.line}`;
  return `${styleText(verdict === 'unnoticed' ? 'red' : 'green', verdict.padEnd(9))} ${where}  ${mutant.kind}: ${mutant.before}  →  ${mutant.after}`;
}

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      count: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      jobs: { type: 'string', default: '2' },
      min: { type: 'string', default: '0' },
      gate: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(USAGE);
  if (values.gate)
    return await plant(changedFolders(), {
      count: GATE_FAULTS,
      seed: commitSeed(),
      jobs: availableParallelism() + 1,
      min: GATE_MIN_PERCENT,
      maxSamples: MAX_SAMPLES,
      judge: { maxTests: GATE_TESTS, testsPass: true },
    });
  await plant(positionals.length > 0 ? positionals : FOLDERS, {
    count: parseInteger('count', values.count, 1),
    seed: parseInteger('seed', values.seed, 0),
    jobs: parseInteger('jobs', values.jobs, 1),
    min: parseInteger('min', values.min, 0),
  });
}

interface Options {
  readonly count: number;
  readonly seed: number;
  readonly jobs: number;
  readonly min: number;
  /** How many samples may decide whether enough faults are noticed. Default: 1. */
  readonly maxSamples?: number;
  readonly judge?: JudgeOptions;
}

async function plant(
  named: readonly string[],
  { count, seed, jobs, min, maxSamples = 1, judge: judgeOptions }: Options,
): Promise<void> {
  const root = join(import.meta.dirname, '..');
  const sources = new Map(sourcesIn(root, named).map((file) => [file, readFileSync(join(root, file), 'utf8')]));
  const mutants = new ChangingMutants(sources, seed);
  const waiting = mutants.take(count);
  const results: Result[] = [];
  console.log(`${waiting.length} mutants in ${sources.size} files, --seed ${seed}`);

  const judge = new Judge(root, jobs, judgeOptions);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      judge.dispose();
      process.exit(130);
    });
  }
  let total = waiting.length;
  const work = async () => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const result = { mutant, verdict: await judge.judge(mutant) };
      results.push(result);
      console.log(`${String(results.length).padStart(4)}/${total} ${show(result)}`);
    }
  };
  try {
    for (let samples = 1; ; samples++) {
      await Promise.all(Array.from({ length: jobs }, work));
      if (percent(results) >= min || samples >= maxSamples) break;
      waiting.push(...mutants.take(count));
      total += waiting.length;
    }
  } finally {
    judge.dispose();
  }

  console.log(`\n${[...shares(results, parts(3)), '', ...shares(results, parts(2))].join('\n')}`);
  const weak = weakGroups(results, parts(3));
  if (weak.length > 0) console.log(`\nbelow ${ENOUGH_PERCENT} %: ${weak.join(', ')}`);
  const unnoticed = results.filter(({ verdict }) => verdict === 'unnoticed');
  console.log(`\n${unnoticed.length} unnoticed:`);
  for (const result of unnoticed.toSorted((a, b) => (a.mutant.file < b.mutant.file ? -1 : 1)))
    console.log(show(result));
  const rest = `--seed ${seed}; ${mutants.equivalent} that change nothing are not counted`;
  console.log(`\nnoticed: ${percent(results).toFixed(1)} % (${rest})`);
  if (percent(results) < min) process.exitCode = 1;
}

if (import.meta.main) await run();
