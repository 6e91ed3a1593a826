/**
 * Work in lanes: in each one thing after the other, some lanes side by side. What fails is tried again in its lane after a
 * while that grows, and holds up no other lane. The name of a lane begins with that of its group, up to the first blank:
 * what has many lanes, and hangs, leaves room for others.
 */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { Quota, type QuotaHolder, type QuotaLimits } from '../../foundation/quota.ts';

export interface LanesOptions {
  readonly backoff: JitteredBackoff;
  /** Lanes that are worked on at one time, by who holds them. */
  readonly atOnce: QuotaLimits;
}

export interface LanesDependencies {
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Who holds a lane. Left out: its group, which the limits treat as named. */
  readonly holderOf?: (lane: string) => QuotaHolder;
  /** Does the next thing of a lane; false where there is none. What it throws is tried again. */
  readonly work: (lane: string, signal: AbortSignal) => Promise<boolean>;
}

interface Lane {
  readonly holder: QuotaHolder;
  /** Failures in a row. */
  failures: number;
  /** The wait after a failure; null while it is worked on or waits for its turn. */
  timer: Timer | null;
  isRunning: boolean;
  /** Something came meanwhile. */
  again: boolean;
  /** Was told meanwhile that it is worth another try. */
  isHurried: boolean;
}

export class Lanes {
  readonly #options: LanesOptions;
  readonly #deps: LanesDependencies;
  readonly #lanes = new Map<string, Lane>();
  /** Those whose turn it is, in the order in which they came. */
  readonly #ready = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  /** Lanes that are worked on. */
  readonly #busy: Quota;
  readonly #stop = new AbortController();

  constructor(options: LanesOptions, dependencies: LanesDependencies) {
    this.#options = options;
    this.#busy = new Quota(options.atOnce);
    this.#deps = dependencies;
  }

  /** There is something to do in a lane: it is done at once, unless something before it has just failed. */
  wake(name: string): void {
    if (this.#stop.signal.aborted) return;
    const lane = this.#lanes.get(name);
    if (lane !== undefined && lane.timer !== null) return;
    if (lane?.isRunning === true) lane.again = true;
    else this.#enqueue(name);
  }

  /** Tries a lane now, however long it was to wait. */
  hurry(name: string): void {
    const lane = this.#lanes.get(name);
    lane?.timer?.cancel();
    if (lane !== undefined) {
      lane.timer = null;
      lane.isHurried = lane.isRunning;
    }
    this.wake(name);
  }

  /** Ends what is under way, and begins nothing more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const { timer } of this.#lanes.values()) timer?.cancel();
    this.#ready.clear();
    await Promise.allSettled(this.#running);
  }

  #enqueue(name: string): void {
    if (!this.#lanes.has(name)) {
      const holder = this.#deps.holderOf?.(name) ?? { node: groupOf(name), source: null, named: true };
      this.#lanes.set(name, { holder, failures: 0, timer: null, isRunning: false, again: false, isHurried: false });
    }
    this.#ready.add(name);
    this.#fill();
  }

  #fill(): void {
    while (this.#running.size < this.#options.atOnce.total) {
      const name = this.#ready.values().find((one) => this.#hasRoom(one));
      const lane = name === undefined ? undefined : this.#lanes.get(name);
      const share = lane === undefined ? null : this.#busy.take(lane.holder);
      if (name === undefined || lane === undefined || share === null) return;
      this.#ready.delete(name);
      lane.isRunning = true;
      const run = this.#run(name, lane);
      this.#running.add(run);
      detach(
        run.finally(() => {
          this.#running.delete(run);
          share.release();
          this.#fill();
        }),
      );
    }
  }

  #hasRoom(name: string): boolean {
    const lane = this.#lanes.get(name);
    return lane !== undefined && this.#busy.fullLevel(lane.holder) === null;
  }

  /** One thing of a lane: those that wait have their turn before its next one. */
  async #run(name: string, lane: Lane): Promise<void> {
    lane.again = false;
    lane.isHurried = false;
    try {
      const hadWork = await this.#deps.work(name, this.#stop.signal);
      lane.failures = 0;
      if (hadWork) lane.again = true;
    } catch {
      lane.failures++;
      lane.again = lane.isHurried;
      if (!lane.again && !this.#stop.signal.aborted) this.#wait(name, lane);
    }
    lane.isRunning = false;
    if (this.#stop.signal.aborted || lane.timer !== null) return;
    if (lane.again) this.#ready.add(name);
    else this.#lanes.delete(name);
  }

  #wait(name: string, lane: Lane): void {
    const ms = backoff(this.#options.backoff, lane.failures, this.#deps.random());
    lane.timer = this.#deps.clock.after(ms, () => {
      lane.timer = null;
      this.wake(name);
    });
  }
}

function groupOf(lane: string): string {
  return lane.split(' ', 1)[0] ?? '';
}
