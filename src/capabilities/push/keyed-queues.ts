/**
 * Keyed work queues. Each queue runs one item at a time, and a limited number of queues run concurrently. A failed item
 * is retried with backoff and delays only its own queue. The name of a queue starts with the name of its group, up to
 * the first space. Limits per group leave room for others if a group with many queues hangs.
 */
import { backoff, type JitteredBackoff } from '../../foundation/backoff.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { Quota, type QuotaHolder, type QuotaLimits } from '../../foundation/quota.ts';

export interface KeyedQueuesOptions {
  readonly backoff: JitteredBackoff;
  /** Limits on concurrently running queues, per holder. */
  readonly atOnce: QuotaLimits;
}

export interface KeyedQueuesDependencies {
  readonly clock: Clock;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** Holder of a queue. Default: its group, which the limits treat as named. */
  readonly holderOf?: (lane: string) => QuotaHolder;
  /** Processes the next item of a queue. Returns false if the queue is empty. If it throws, the item is retried. */
  readonly work: (lane: string, signal: AbortSignal) => Promise<boolean>;
}

interface QueueState {
  readonly holder: QuotaHolder;
  /** Consecutive failures. */
  failures: number;
  /** Backoff timer after a failure; null while the queue is running or ready. */
  timer: Timer | null;
  isRunning: boolean;
  /** An item was added while the queue was running. */
  hasNewItem: boolean;
  /** A retry was requested while the queue was running. */
  isRetryRequested: boolean;
}

export class KeyedQueues {
  readonly #options: KeyedQueuesOptions;
  readonly #deps: KeyedQueuesDependencies;
  readonly #lanes = new Map<string, QueueState>();
  /** Queues ready to run, in FIFO order. */
  readonly #ready = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  /** Running queues. */
  readonly #busy: Quota;
  readonly #stop = new AbortController();

  constructor(options: KeyedQueuesOptions, dependencies: KeyedQueuesDependencies) {
    this.#options = options;
    this.#busy = new Quota(options.atOnce);
    this.#deps = dependencies;
  }

  /** Runs a queue that has a new item. If its last item failed, the backoff still applies. */
  wake(name: string): void {
    if (this.#stop.signal.aborted) return;
    const lane = this.#lanes.get(name);
    if (lane !== undefined && lane.timer !== null) return;
    if (lane?.isRunning === true) lane.hasNewItem = true;
    else this.#enqueue(name);
  }

  /** Retries a queue now and skips its backoff. */
  retryNow(name: string): void {
    const lane = this.#lanes.get(name);
    lane?.timer?.cancel();
    if (lane !== undefined) {
      lane.timer = null;
      lane.isRetryRequested = lane.isRunning;
    }
    this.wake(name);
  }

  /** Aborts the running items and starts no others. */
  async stop(): Promise<void> {
    this.#stop.abort();
    for (const { timer } of this.#lanes.values()) timer?.cancel();
    this.#ready.clear();
    await Promise.allSettled(this.#running);
  }

  #enqueue(name: string): void {
    if (!this.#lanes.has(name)) {
      const holder = this.#deps.holderOf?.(name) ?? { node: groupOf(name), source: null, named: true };
      this.#lanes.set(name, {
        holder,
        failures: 0,
        timer: null,
        isRunning: false,
        hasNewItem: false,
        isRetryRequested: false,
      });
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

  /** Processes one item. Other ready queues run before the next item of this queue. */
  async #run(name: string, lane: QueueState): Promise<void> {
    lane.hasNewItem = false;
    lane.isRetryRequested = false;
    try {
      const hadWork = await this.#deps.work(name, this.#stop.signal);
      lane.failures = 0;
      if (hadWork) lane.hasNewItem = true;
    } catch {
      lane.failures++;
      lane.hasNewItem = lane.isRetryRequested;
      if (!lane.hasNewItem && !this.#stop.signal.aborted) this.#wait(name, lane);
    }
    lane.isRunning = false;
    if (this.#stop.signal.aborted || lane.timer !== null) return;
    if (lane.hasNewItem) this.#ready.add(name);
    else this.#lanes.delete(name);
  }

  #wait(name: string, lane: QueueState): void {
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
