/**
 * When each agent last showed life. Kept in memory and written in small batches: a heartbeat costs
 * no disk write, and a crash loses a minute of them at most.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';

/** Milliseconds from the first heartbeat that is not written to the write, and from a write that failed to the next. */
const FLUSH_INTERVAL_MS = 60_000;
/** Heartbeats per write: more of them would hold up the event loop. */
const FLUSH_BATCH = 500;
/** Milliseconds between the writes of one round. */
const FLUSH_PAUSE_MS = 50;

interface HeartbeatsDependencies {
  readonly agents: AgentStore;
  readonly clock: Clock;
  readonly log: Log;
}

export class Heartbeats {
  readonly #deps: HeartbeatsDependencies;
  readonly #unwritten = new Map<Aid, number>();
  readonly #flush: RepeatingTask;

  constructor(dependencies: HeartbeatsDependencies) {
    this.#deps = dependencies;
    const onError = (error: unknown): void =>
      dependencies.log.warn({ error }, 'heartbeats could not be written; it is tried again');
    this.#flush = every(dependencies.clock, { firstMs: UNTIL_REQUESTED, periodMs: FLUSH_INTERVAL_MS, onError }, () => {
      this.#write();
      return this.#unwritten.size > 0 ? FLUSH_PAUSE_MS : UNTIL_REQUESTED;
    });
  }

  record(aid: Aid): void {
    this.#unwritten.set(aid, this.#deps.clock.now());
    this.#flush.soon(FLUSH_INTERVAL_MS);
  }

  /** Unix milliseconds of an agent's last heartbeat; `stored` is what its row says. */
  last(aid: Aid, stored: number): number {
    return this.#unwritten.get(aid) ?? stored;
  }

  forget(aid: Aid): void {
    this.#unwritten.delete(aid);
  }

  /** Writes all that is left. */
  stop(): void {
    this.#flush.stop();
    while (this.#unwritten.size > 0) this.#write();
  }

  #write(): void {
    const batch = this.#unwritten.entries().take(FLUSH_BATCH).toArray();
    this.#deps.agents.setHeartbeats(batch);
    for (const [aid] of batch) this.#unwritten.delete(aid);
  }
}
