/**
 * Divides test files into jobs, each of which is one process. Loading the daemon's modules takes longer than most tests,
 * so the files of a folder share a process. A file runs alone if it, or a helper that it imports, touches the state of
 * its process: environment, signals, built-in modules, child processes.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { moduleGraph } from '../module-graph.ts';

/** One process that runs test files. */
export interface Job {
  readonly name: string;
  readonly files: readonly string[];
  readonly isEndToEnd: boolean;
}

const UNIT = 'test/{foundation,network,capabilities,operations,surfaces,panel,daemon,tools,fuzz,sim}/**/*.test.ts';
const END_TO_END = 'test/e2e/**/*.test.ts';
/** Runs during all other tests. */
export const FRESH_SEEDS = 'test/sim/fresh-seeds.test.ts';
/** Folders of programs that are not part of a test: they have their own process, or no state. */
const PROGRAMS = /^(?:src|panel|dist|node_modules)\//;
/** Code that changes or reads the state of a process. */
const PROCESS_STATE =
  /node:(?:child_process|worker_threads|v8)|process\.(?:argv|chdir|emitWarning|env|execArgv|exit|kill|memoryUsage|getActive|on\b|once|std|title|umask)|\bmock\b|syncBuiltin|registerHooks|globalThis|\bgc\(|\/\/ Runs alone/;
/** Helpers that only read the environment. */
const HARMLESS = new Set(['test/support/scale.ts']);
/** A folder with fewer files shares a process with its parent's other folders. */
const MIN_POOL_FILES = 4;
/** Folders whose files take longest, and run first, so that no core is idle at the end. */
const FIRST = ['test/sim/', 'test/fuzz/', 'test/e2e/'];

/** All test files, sorted. */
export function allTestFiles(): { readonly unit: readonly string[]; readonly endToEnd: readonly string[] } {
  const list = (pattern: string) => globSync(pattern).map((file) => file.replaceAll('\\', '/'));
  return {
    unit: list(UNIT)
      .filter((file) => file !== FRESH_SEEDS)
      .sort(),
    endToEnd: list(END_TO_END).sort(),
  };
}

/** Whether test files touch the state of their process, themselves or by their helpers. */
export class ProcessState {
  readonly #read: (file: string) => string | null;
  readonly #known = new Map<string, boolean>();

  /** @param read returns the text of a file; null if there is none */
  constructor(read: (file: string) => string | null = readText) {
    this.#read = read;
  }

  isTouchedBy(file: string): boolean {
    const known = this.#known.get(file);
    if (known !== undefined) return known;
    if (HARMLESS.has(file)) return false;
    // Files that import each other.
    this.#known.set(file, false);
    const text = this.#read(file) ?? '';
    const imports = moduleGraph({ [file]: text }).get(file)?.imports ?? [];
    const helpers = imports.filter((name) => name.endsWith('.ts') && !PROGRAMS.test(name));
    const isTouched = PROCESS_STATE.test(text) || helpers.some((helper) => this.isTouchedBy(helper));
    this.#known.set(file, isTouched);
    return isTouched;
  }
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

function rankOf({ files: [first = ''] }: Job): number {
  const rank = FIRST.findIndex((folder) => first.startsWith(folder));
  return rank < 0 ? FIRST.length : rank;
}

/** Whether the files of a job run processes or simulations. */
export function isSlow(job: Job): boolean {
  return rankOf(job) < FIRST.length;
}

/** The jobs of unit tests: one per folder, and one per file that runs alone. The slowest come first. */
export function planJobs(
  files: { readonly unit: readonly string[]; readonly endToEnd: readonly string[] },
  state: ProcessState = new ProcessState(),
): Job[] {
  const shared = files.unit.filter((file) => !state.isTouchedBy(file));
  const byFolder = Map.groupBy(shared, dirname);
  const pools = new Map<string, string[]>();
  for (const [folder, members] of byFolder) {
    const pool = members.length < MIN_POOL_FILES ? join(dirname(folder), '…').replaceAll('\\', '/') : folder;
    pools.set(pool, [...(pools.get(pool) ?? []), ...members]);
  }
  const alone = new Set(files.unit);
  for (const file of shared) alone.delete(file);
  const jobs: Job[] = [
    ...[...pools].map(([name, members]) => ({ name, files: members, isEndToEnd: false })),
    ...[...alone].map((file) => ({ name: file, files: [file], isEndToEnd: false })),
    ...files.endToEnd.map((file) => ({ name: file, files: [file], isEndToEnd: true })),
  ];
  return jobs.toSorted((a, b) => rankOf(a) - rankOf(b) || b.files.length - a.files.length);
}
