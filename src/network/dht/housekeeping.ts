/** What is done now and then to what this node keeps: expired records go, and known nodes are written down. */
import type { Address } from '../../foundation/address.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import type { RecordStore } from './record-store.ts';

/** How often expired records are removed, and again where many are left, milliseconds. */
const PURGE_INTERVAL_MS = 60_000;
const PURGE_AGAIN_MS = 200;
/** How often the known nodes are written down for the next start, and how many, milliseconds. */
const SAVE_NODES_INTERVAL_MS = 300_000;
const MAX_SAVED_NODES = 50;

export interface HousekeepingDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Pick<RecordStore, 'purge' | 'saveNodes'>;
  /** The nodes of the routing table. */
  readonly nodes: () => readonly Address[];
}

export class Housekeeping {
  readonly #deps: HousekeepingDependencies;
  readonly #timers = new Map<string, Timer>();
  #stopped = false;

  constructor(dependencies: HousekeepingDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    const { store } = this.#deps;
    this.#every('purge', PURGE_INTERVAL_MS, () => (store.purge() ? PURGE_AGAIN_MS : PURGE_INTERVAL_MS));
    this.#every('save', SAVE_NODES_INTERVAL_MS, () => {
      this.#saveNodes();
      return SAVE_NODES_INTERVAL_MS;
    });
  }

  /** Writes the known nodes down a last time. @throws SvcError where the disk refuses */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#saveNodes();
  }

  /** Runs a task now and then; it returns after how many milliseconds it runs again. What the disk refuses is tried later. */
  #every(name: string, firstMs: number, task: () => number): void {
    const run = (): void => {
      let ms = firstMs;
      try {
        ms = task();
      } catch (error) {
        this.#deps.log.warn({ error, task: name }, 'the store of records could not be written');
      }
      if (!this.#stopped) this.#timers.set(name, this.#deps.clock.after(ms, run));
    };
    this.#timers.set(name, this.#deps.clock.after(firstMs, run));
  }

  #saveNodes(): void {
    const nodes = this.#deps.nodes();
    if (nodes.length > 0) this.#deps.store.saveNodes(nodes.slice(-MAX_SAVED_NODES));
  }
}
