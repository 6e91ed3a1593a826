/**
 * Returns unused memory to the system. An idle process does not do this automatically. V8 keeps a young generation of the
 * size that the last load needed, with garbage in it. The C library keeps freed memory between blocks that are in use.
 *
 * Measured on two joined daemons on loopback (Node 26, x64), four minutes after 2,000 calls of 1 KiB and 200 notes:
 * 107 MiB each, and 122 and 118 MiB without the releases, after 154 and 136 MiB in the first seconds. One minute after
 * 640 calls of 1 MiB: 105 MiB, and 145 and 153 MiB without.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memberOf } from './json.ts';
import type { Component } from './lifecycle.ts';
import type { NodeParts } from './node-parts.ts';
import { every, type RepeatingTask } from './repeat.ts';

const SHOW = '--expose-gc';
const HIDE = '--no-expose-gc';
const EMIT = 'emitWarning';
const IS_EXPERIMENTAL = 'ExperimentalWarning';

/** Runs a full garbage collection and shrinks the heap. Blocks for about 60 ms with a 20 MB heap. */
function collectGarbage(): void {
  setFlagsFromString(SHOW);
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString(HIDE);
  if (typeof collect === 'function')
    Reflect.apply(collect, undefined, [{ type: 'major', execution: 'sync', flavor: 'last-resort' }]);
}

/**
 * `node:ffi` without its experimental warning, which does not concern users of svcd. Undefined if Node does not have
 * it.
 */
function foreignFunctions(): object | undefined {
  const emitWarning = Reflect.get(process, EMIT);
  Reflect.set(process, EMIT, (...warning: unknown[]): void => {
    if (!warning.includes(IS_EXPERIMENTAL)) Reflect.apply(emitWarning, process, warning);
  });
  try {
    return process.getBuiltinModule('node:ffi');
  } finally {
    Reflect.set(process, EMIT, emitWarning);
  }
}

/** `malloc_trim` of the GNU C library; null on other systems, or if Node has no `node:ffi`. */
function findTrim(): (() => void) | null {
  if (process.platform !== 'linux') return null;
  try {
    const ffi = foreignFunctions();
    const dlopen = memberOf(ffi, 'dlopen');
    if (typeof dlopen !== 'function') return null;
    const wanted = { malloc_trim: { arguments: ['u64'], return: 'i32' } };
    const opened: unknown = Reflect.apply(dlopen, ffi, [null, wanted]);
    const trim = memberOf(opened, 'functions', 'malloc_trim');
    if (typeof trim !== 'function') return null;
    return () => {
      Reflect.apply(trim, undefined, [0n]);
    };
  } catch {
    // Another C library.
    return null;
  }
}

let trim: ReturnType<typeof findTrim> | undefined;

/** Blocks the process for about 0.1 s, so call it only while the process is idle. */
export function releaseMemory(): void {
  collectGarbage();
  trim ??= findTrim();
  trim?.();
}

// Releases memory after a load is over.

/** Milliseconds between two checks. */
const MEMORY_CHECK_MS = 5000;
/** The process is idle if it used less than this part of one CPU since the last check. */
const IDLE_CPU_PART = 0.03;
/** Minimum number of bytes above the last low mark that makes a release worthwhile. */
const MIN_RELEASE_BYTES: number = 12 * 1024 * 1024;

/** Resource usage of this process. */
interface ProcessUsage {
  /** CPU time since the start, in milliseconds. */
  cpuMs(): number;
  /** Memory, in bytes. */
  residentBytes(): number;
}

interface MemoryReleaserDependencies extends NodeParts {
  readonly usage: ProcessUsage;
  /** Releases unused memory; blocks the process meanwhile. */
  readonly release: () => void;
}

export const processUsage: ProcessUsage = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  residentBytes: () => process.memoryUsage.rss(),
};

export class MemoryReleaser implements Component {
  readonly #deps: MemoryReleaserDependencies;
  /** Memory after the last release. Starts at 0, because a start uses more than is needed later. */
  #floorBytes = 0;
  #checkedAt = 0;
  #cpuMs = 0;
  #checks: RepeatingTask | null = null;

  constructor(dependencies: MemoryReleaserDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#recordUsage();
    const onError = (error: unknown): void => log.warn({ error }, 'memory could not be released');
    this.#checks = every(clock, { periodMs: MEMORY_CHECK_MS, onError }, () => this.#check());
  }

  async stop(): Promise<void> {
    this.#checks?.stop();
  }

  #check(): void {
    const { clock, log, usage: taken, release: giveBack } = this.#deps;
    const passed = clock.now() - this.#checkedAt;
    const isResting = passed > 0 && taken.cpuMs() - this.#cpuMs < IDLE_CPU_PART * passed;
    const before = taken.residentBytes();
    this.#floorBytes = Math.min(this.#floorBytes, before);
    if (isResting && before - this.#floorBytes >= MIN_RELEASE_BYTES) {
      giveBack();
      this.#floorBytes = taken.residentBytes();
      log.debug({ before, left: this.#floorBytes }, 'memory released');
    }
    this.#recordUsage();
  }

  #recordUsage(): void {
    const { clock, usage: taken } = this.#deps;
    this.#checkedAt = clock.now();
    this.#cpuMs = taken.cpuMs();
  }
}
