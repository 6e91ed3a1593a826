/** What is done now and then to what this node keeps: expired records go, and known nodes are written down. */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
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
  readonly #repeating: RepeatingTask[] = [];

  constructor(dependencies: HousekeepingDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    const { clock, log, store } = this.#deps;
    // What the disk refuses is tried later.
    const onError = (error: unknown): void => log.warn({ error }, 'the store of records could not be written');
    this.#repeating.push(
      every(clock, { periodMs: PURGE_INTERVAL_MS, onError }, () =>
        store.purge() ? PURGE_AGAIN_MS : PURGE_INTERVAL_MS,
      ),
      every(clock, { periodMs: SAVE_NODES_INTERVAL_MS, onError }, () => this.#saveNodes()),
    );
  }

  /** Writes the known nodes down a last time. @throws SvcError where the disk refuses */
  stop(): void {
    for (const repeating of this.#repeating) repeating.stop();
    this.#saveNodes();
  }

  #saveNodes(): void {
    const nodes = this.#deps.nodes();
    if (nodes.length > 0) this.#deps.store.saveNodes(nodes.slice(-MAX_SAVED_NODES));
  }
}
