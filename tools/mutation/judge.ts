/** Runs the unit tests that can notice a fault, in a copy of the repository, until one of them fails. */
import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { killTree, makeNice } from '../test-group.ts';
import { ProcessState } from '../test-run/plan.ts';
import { applyMutant, type Mutant } from './generate.ts';

export type Verdict = 'noticed' | 'hung' | 'unnoticed';

/**
 * A test with a fault may take this many times its usual time, plus a fixed time, because other programs use the
 * machine.
 */
const TIMEOUT_FACTOR = 5;
const TIMEOUT_MARGIN_MS = 15_000;
/** Timeout for a test file without a fault, milliseconds. */
const MAX_BASELINE_MS = 300_000;
/** Timeout of tests whose usual time is unknown and that get only the time that others leave, milliseconds. */
const LIMIT_MS = 180_000;
/** Heap limit of a test, so that a fault that fills memory stops the test and not the machine. */
const HEAP_MB = 1024;
/** Folders that unit tests do not need, or that are linked instead of copied. */
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', 'coverage']);
/** Source paths in a text: imports, workers and child processes of a test. */
const NAMED_FILE = /['"`]([^'"`\n]*\.ts)['"`]/g;

export interface JudgeOptions {
  /** Maximum number of test files for one fault, the nearest first. Default: all. */
  readonly maxTests?: number;
  /** Whether all tests are known to pass, so that none runs without a fault first, and several share a process. */
  readonly testsPass?: boolean;
}

const running = new Set<number>();

function endGroup(pid: number): void {
  running.delete(pid);
  killTree(pid);
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All its processes have exited.
  }
}

/** Runs test files in one process. Stops it and its processes at the first failure. */
function runTests(copy: string, files: readonly string[], limitMs: number): Promise<Verdict> {
  const temporary = join(copy, '.tmp');
  const together = files.length > 1 ? ['--test', '--test-isolation=none'] : [];
  const args = [`--max-old-space-size=${HEAP_MB}`, ...together, '--test-reporter=tap', ...files];
  const env = { ...process.env, TMPDIR: temporary, HOME: temporary, NODE_COMPILE_CACHE: join(copy, '.cache') };
  mkdirSync(temporary, { recursive: true });
  // A separate process group, so that child processes stop with it.
  const child = spawn(process.execPath, args, { cwd: copy, env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  const { pid } = child;
  if (pid !== undefined) {
    running.add(pid);
    // Linux compares sessions by their own niceness, which a new one does not inherit.
    if (getPriority() > 0) makeNice(pid, getPriority());
  }
  const { promise, resolve: settle, reject } = Promise.withResolvers<Verdict>();
  const timer = setTimeout(() => settle('hung'), limitMs);
  let tail = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    tail += text;
    if (/^\s*not ok/m.test(tail)) settle('noticed');
    tail = tail.slice(tail.lastIndexOf('\n') + 1);
  });
  child.once('error', reject);
  child.once('exit', (code) => settle(code === 0 ? 'unnoticed' : 'noticed'));
  return promise.finally(() => {
    clearTimeout(timer);
    if (pid !== undefined) endGroup(pid);
    rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
  });
}

/** Existing files that a file names. */
function namedBy(root: string, file: string): string[] {
  const names = [...readFileSync(join(root, file), 'utf8').matchAll(NAMED_FILE)].map(([, name = '']) => name);
  return names
    .flatMap((name) => [resolve(root, dirname(file), name), resolve(root, name)])
    .filter((path) => path.startsWith(root) && existsSync(path))
    .map((path) => relative(root, path));
}

/** Copies of the repository, with cached data about its tests. */
export class Judge {
  readonly #root: string;
  readonly #options: JudgeOptions;
  readonly #scratch = mkdtempSync(join(tmpdir(), 'svcd-mutants-'));
  readonly #free: string[] = [];
  readonly #named = new Map<string, readonly string[]>();
  readonly #baselines = new Map<string, Promise<number>>();
  readonly #state = new ProcessState();

  /** @param copies how many faults are judged at a time */
  constructor(root: string, copies: number, options: JudgeOptions = {}) {
    this.#root = root;
    this.#options = options;
    for (let i = 0; i < copies; i += 1) {
      const copy = join(this.#scratch, String(i));
      cpSync(root, copy, { recursive: true, filter: (from) => !NOT_COPIED.has(relative(root, from)) });
      symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
      this.#free.push(copy);
    }
  }

  /** The test files of the folder, or of the nearest parent with tests, that reach the file. The nearest come first. */
  testsOf(file: string): string[] {
    const mirrored = file.replace(/^src\//, 'test/').replace(/\.ts$/, '.test.ts');
    let folder = dirname(mirrored);
    while (folder !== '.' && globSync(`${folder}/**/*.test.ts`, { cwd: this.#root }).length === 0)
      folder = dirname(folder);
    return globSync(`${folder}/**/*.test.ts`, { cwd: this.#root })
      .map((test) => ({ test, steps: test === mirrored ? 0 : this.#stepsTo(test, file) }))
      .filter(({ steps }) => steps !== undefined)
      .sort((a, b) => (a.steps ?? 0) - (b.steps ?? 0) || (a.test < b.test ? -1 : 1))
      .map(({ test }) => test);
  }

  #stepsTo(from: string, to: string): number | undefined {
    const seen = new Set([from]);
    let border = [from];
    for (let steps = 0; border.length > 0; steps += 1) {
      if (border.includes(to)) return steps;
      border = [...new Set(border.flatMap((file) => this.#namedBy(file)))].filter((file) => !seen.has(file));
      for (const file of border) seen.add(file);
    }
    return undefined;
  }

  #namedBy(file: string): readonly string[] {
    const named = this.#named.get(file) ?? namedBy(this.#root, file);
    this.#named.set(file, named);
    return named;
  }

  /** The duration of a test file without a fault. @throws Error if it fails */
  #baseline(copy: string, test: string): Promise<number> {
    const measure = async () => {
      const begun = performance.now();
      const verdict = await runTests(copy, [test], MAX_BASELINE_MS);
      if (verdict !== 'unnoticed') throw new Error(`${test} fails (${verdict}) without any fault`);
      return performance.now() - begun;
    };
    const known = this.#baselines.get(test) ?? measure();
    this.#baselines.set(test, known);
    return known;
  }

  async #limitMs(copy: string, files: readonly string[]): Promise<number> {
    const usual = await Promise.all(files.map((file) => this.#baseline(copy, file)));
    return usual.reduce((sum, ms) => sum + ms, 0) * TIMEOUT_FACTOR + TIMEOUT_MARGIN_MS;
  }

  /** The nearest test file, which notices most faults, alone. Then the others that may share a process, in one. */
  #together([nearest, ...others]: readonly string[]): string[][] {
    if (nearest === undefined) return [];
    const { shared = [], alone = [] } = Object.groupBy(others, (file) =>
      this.#state.isTouchedBy(file) ? 'alone' : 'shared',
    );
    return [[nearest], ...(shared.length > 0 ? [shared] : []), ...alone.map((file) => [file])];
  }

  /** Plants the fault in a copy and runs the tests until one notices. At most one call per copy may run. */
  async judge(mutant: Mutant): Promise<Verdict> {
    const copy = this.#free.pop();
    if (copy === undefined) throw new Error('All copies are in use. Judge fewer mutants in parallel.');
    const { maxTests, testsPass = false } = this.#options;
    const tests = this.testsOf(mutant.file).slice(0, maxTests);
    const path = join(copy, mutant.file);
    const source = readFileSync(path, 'utf8');
    try {
      for (const files of testsPass ? this.#together(tests) : tests.map((test) => [test])) {
        const limitMs = testsPass ? LIMIT_MS : await this.#limitMs(copy, files);
        writeFileSync(path, applyMutant(source, mutant));
        const verdict = await runTests(copy, files, limitMs);
        writeFileSync(path, source);
        if (verdict !== 'unnoticed') return verdict;
      }
      return 'unnoticed';
    } finally {
      this.#free.push(copy);
    }
  }

  /** Stops running tests and removes the copies. */
  dispose(): void {
    for (const pid of running) endGroup(pid);
    rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}
