/**
 * When each agent last showed life. Kept in memory and written in small batches: a heartbeat costs
 * no disk write, and a crash loses a minute of them at most.
 */
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Log } from '../../foundation/log.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';

/** Milliseconds between writes. */
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
  #timer: Timer | null = null;
  #stopped = false;

  constructor(dependencies: HeartbeatsDependencies) {
    this.#deps = dependencies;
  }

  record(aid: Aid): void {
    this.#unwritten.set(aid, this.#deps.clock.now());
    if (!this.#stopped) this.#timer ??= this.#deps.clock.after(FLUSH_INTERVAL_MS, () => this.#flush());
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
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    while (this.#unwritten.size > 0) this.#write();
  }

  #flush(): void {
    const { clock, log } = this.#deps;
    let pause = FLUSH_PAUSE_MS;
    this.#timer = null;
    try {
      this.#write();
    } catch (error) {
      log.warn({ error }, 'heartbeats could not be written; it is tried again');
      pause = FLUSH_INTERVAL_MS;
    }
    if (this.#unwritten.size > 0) this.#timer = clock.after(pause, () => this.#flush());
  }

  #write(): void {
    const batch = this.#unwritten.entries().take(FLUSH_BATCH).toArray();
    this.#deps.agents.setHeartbeats(batch);
    for (const [aid] of batch) this.#unwritten.delete(aid);
  }
}
