/** Releases memory after a load is over. */
import type { Clock } from './clock.ts';
import type { Component } from './lifecycle.ts';
import type { Log } from './log.ts';
import { every, type RepeatingTask } from './repeat.ts';

/** Milliseconds between two checks. */
const MEMORY_CHECK_MS = 5000;
/** The process is idle if it used less than this part of one CPU since the last check. */
const IDLE_CPU_PART = 0.03;
/** Minimum number of bytes above the last low mark that makes a release worthwhile. */
const MIN_RELEASE_BYTES: number = 12 * 1024 * 1024;

/** Resource usage of this process. */
export interface ProcessUsage {
  /** CPU time since the start, in milliseconds. */
  cpuMs(): number;
  /** Memory, in bytes. */
  residentBytes(): number;
}

interface MemoryReleaserDependencies {
  readonly clock: Clock;
  readonly log: Log;
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
