/**
 * Queues of notifications by name. Each queue runs one item at a time, and a limited number of queues run concurrently. A
 * failed item is retried with backoff and delays only its own queue. The name of a queue starts with the name of its
 * group, up to the first space. Limits per group leave room for others if a group with many queues hangs.
 */
import { DueNames } from '../../foundation/due-names.ts';
import { DueQueue, type DueQueueDependencies, type DueQueueOptions } from '../../foundation/due-queue.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';

export type KeyedQueuesDependencies = Pick<DueQueueDependencies<string>, 'clock' | 'log' | 'network' | 'random'> & {
  /** Holder of a queue. Default: its group, which the limits treat as named. */
  readonly holderOf?: (lane: string) => QuotaHolder;
  /** Processes the next item of a queue. Returns false if the queue is empty. If it throws, the item is retried. */
  readonly work: (lane: string, signal: AbortSignal) => Promise<boolean>;
};

export class KeyedQueues {
  readonly #deps: KeyedQueuesDependencies;
  readonly #names = new DueNames(groupOf);
  readonly #queue: DueQueue<string>;
  /** Queues whose backoff must be skipped if their running item fails. */
  readonly #urgent = new Set<string>();

  constructor(options: DueQueueOptions, dependencies: KeyedQueuesDependencies) {
    const { clock, holderOf } = dependencies;
    this.#deps = dependencies;
    this.#queue = new DueQueue(options, {
      ...dependencies,
      table: this.#names,
      now: () => clock.monotonic(),
      work: (name, signal) => this.#run(name, signal),
      holderOf: ({ item, key }) => holderOf?.(item) ?? { node: key, source: null, named: true },
    });
  }

  start(): void {
    this.#queue.start();
  }

  /** Aborts the running items and starts no others. */
  async stop(): Promise<void> {
    await this.#queue.stop();
  }

  /** Runs a queue that has a new item. If its last item failed, the backoff still applies. */
  wake(name: string): void {
    if (!this.#names.has(name)) this.#names.plan(name, this.#deps.clock.monotonic());
    this.#queue.soon();
  }

  /** Retries a queue now and skips its backoff. */
  retryNow(name: string): void {
    this.#urgent.add(name);
    this.#names.plan(name, this.#deps.clock.monotonic());
    this.#queue.soon();
  }

  /** Processes one item. Other ready queues run before the next item of this queue. */
  async #run(name: string, signal: AbortSignal): Promise<void> {
    const { work, clock } = this.#deps;
    // An item that is added meanwhile plans the queue again.
    this.#names.cancel(name);
    this.#urgent.delete(name);
    try {
      if (!(await work(name, signal))) return;
    } catch (error) {
      if (!this.#urgent.has(name)) throw error;
    }
    this.#names.plan(name, clock.monotonic());
  }
}

function groupOf(lane: string): string {
  return lane.split(' ', 1)[0] ?? '';
}
