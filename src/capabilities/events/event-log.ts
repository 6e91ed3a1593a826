/** The durable log of events: what capabilities tell, in one sequence for all agents of this daemon. */
import type { Clock } from '../../foundation/clock.ts';
import type { EventCause, EventPayloads, EventSink, EventType } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { EventBounds, EventFilter, EventStore, StoredEvent } from '../../foundation/store/events.ts';

/** How long an event is kept at most, milliseconds. */
export const EVENT_AGE_MS = 7 * 24 * 3_600_000;
/** How often old events are looked for, milliseconds. */
const SWEEP_MS = 10 * 60_000;
/** Events that are forgotten at once: the event loop waits meanwhile. */
const MAX_SWEPT_AT_ONCE = 500;
/** The pause before more of them, milliseconds. */
const SWEEP_PAUSE_MS = 50;

/** Part of a stream. */
export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Where the next page goes on. */
  readonly lastSeq: number;
  /** The oldest event of the stream that is kept; 0 where none is. */
  readonly oldestSeq: number;
  /** The cursor is too old or from the future: nothing is given, begin again at 0. */
  readonly truncated: boolean;
}

export interface EventLogDependencies {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly log: Log;
}

export class EventLog implements Component, EventSink {
  readonly #deps: EventLogDependencies;
  readonly #appended = new Listeners<[]>();
  #sweep: RepeatingTask | null = null;

  constructor(dependencies: EventLogDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'old events could not be forgotten');
    this.#sweep = every(clock, { firstMs: SWEEP_PAUSE_MS, periodMs: SWEEP_MS, onError }, () => {
      const swept = store.deleteBefore(clock.now() - EVENT_AGE_MS, MAX_SWEPT_AT_ONCE);
      return swept === MAX_SWEPT_AT_ONCE ? SWEEP_PAUSE_MS : SWEEP_MS;
    });
  }

  async stop(): Promise<void> {
    this.#sweep?.stop();
  }

  emit<T extends EventType>(aid: Aid, type: T, data: EventPayloads[T], cause?: EventCause): number {
    const seq = this.#deps.store.append(aid, type, this.#deps.clock.now(), JSON.stringify(data), cause);
    this.#appended.notify();
    return seq;
  }

  /**
   * Tells of events that were or are about to be added: a transaction around them may still fail, so
   * a listener looks into the log later, in a turn of its own.
   */
  onAppended(listener: () => void): () => void {
    return this.#appended.add(listener);
  }

  /**
   * Events of a stream behind a cursor.
   * @param aid one agent's stream; null for all of them
   * @param afterSeq number of the last event seen; 0 begins with the oldest that is kept
   */
  page(aid: Aid | null, afterSeq: number, limit: number, types?: readonly EventType[]): EventPage {
    const { oldestSeq, lastSeq, prunedSeq } = this.bounds(aid);
    if (this.misses(afterSeq, prunedSeq)) return { events: [], lastSeq, oldestSeq, truncated: true };
    const events = this.#deps.store.after(afterSeq, limit, { aid: aid ?? undefined, types });
    const last = events.length < limit ? undefined : events.at(-1);
    return { events, lastSeq: last?.seq ?? Math.max(lastSeq, afterSeq), oldestSeq, truncated: false };
  }

  /** True for a cursor from which a stream cannot be taken up without a gap. */
  misses(afterSeq: number, prunedSeq: number): boolean {
    return (afterSeq !== 0 && afterSeq < prunedSeq) || afterSeq > this.#deps.store.lastSeq();
  }

  bounds(aid: Aid | null): EventBounds {
    return this.#deps.store.bounds(aid ?? undefined);
  }

  /** Events behind `seq` without a look at what was forgotten. */
  after(seq: number, limit: number, filter?: EventFilter): readonly StoredEvent[] {
    return this.#deps.store.after(seq, limit, filter);
  }

  /** The number of the newest event. */
  lastSeq(): number {
    return this.#deps.store.lastSeq();
  }

  /** Forgets the events of an agent that is gone. */
  forget(aid: Aid): void {
    this.#deps.store.forget(aid);
  }
}
