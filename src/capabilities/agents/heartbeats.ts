/**
 * The time of each agent's last heartbeat. Kept in memory and written in small batches: a heartbeat costs no disk
 * write, and a crash loses at most one minute of heartbeats.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';

/** Delay from the first unwritten heartbeat to the write, and from a failed write to its retry, in milliseconds. */
const FLUSH_INTERVAL_MS = 60_000;
/** Heartbeats per write. A larger batch would block the event loop. */
const FLUSH_BATCH = 500;
/** Milliseconds between the batches of one flush. */
const FLUSH_PAUSE_MS = 50;

export class Heartbeats {
  readonly #agents: AgentStore;
  readonly #clock: Clock;
  readonly #unwritten = new Map<Aid, number>();
  readonly #flush: RepeatingTask;

  constructor(agents: AgentStore, clock: Clock, log: Log) {
    this.#agents = agents;
    this.#clock = clock;
    const onError = (error: unknown): void => log.warn({ error }, 'failed to write heartbeats; will retry');
    this.#flush = every(clock, { firstMs: UNTIL_REQUESTED, periodMs: FLUSH_INTERVAL_MS, onError }, () => {
      this.#write();
      return this.#unwritten.size > 0 ? FLUSH_PAUSE_MS : UNTIL_REQUESTED;
    });
  }

  record(aid: Aid): void {
    this.#unwritten.set(aid, this.#clock.now());
    this.#flush.soon(FLUSH_INTERVAL_MS);
  }

  /** Unix milliseconds of an agent's last heartbeat. `stored` is the value in the database. */
  last(aid: Aid, stored: number): number {
    return this.#unwritten.get(aid) ?? stored;
  }

  forget(aid: Aid): void {
    this.#unwritten.delete(aid);
  }

  /** Flushes all pending heartbeats. */
  stop(): void {
    this.#flush.stop();
    while (this.#unwritten.size > 0) this.#write();
  }

  #write(): void {
    const batch = this.#unwritten.entries().take(FLUSH_BATCH).toArray();
    this.#agents.setHeartbeats(batch);
    for (const [aid] of batch) this.#unwritten.delete(aid);
  }
}
