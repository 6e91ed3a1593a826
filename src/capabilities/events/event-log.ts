/** The durable event log: one sequence for all agents of this daemon. */
import type { Clock } from '../../foundation/clock.ts';
import type { EventCause, EventPayloads, EventSink, EventType } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { EventBounds, EventFilter, EventStore, StoredEvent } from '../../foundation/store/events.ts';

/** Events are deleted after this time, milliseconds. */
export const EVENT_AGE_MS = 7 * 24 * 3_600_000;
/** Interval of the check for old events, milliseconds. */
const SWEEP_MS = 10 * 60_000;
/** Events that are deleted in one step, because the event loop is blocked meanwhile. */
const MAX_SWEPT_AT_ONCE = 500;
/** Pause between these steps, milliseconds. */
const SWEEP_PAUSE_MS = 50;

/** A page of a stream. */
export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Pass this as `afterSeq` to read the next page. */
  readonly lastSeq: number;
  /** The oldest stored event of the stream, or 0 if there is none. */
  readonly oldestSeq: number;
  /** The cursor is too old or in the future. The page is empty: start again at 0. */
  readonly truncated: boolean;
}

export class EventLog implements Component, EventSink {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #appended = new Listeners<[]>();
  readonly #emitted = new Listeners<[Aid, EventType, EventPayloads[EventType]]>();
  #sweep: RepeatingTask | null = null;

  constructor(store: EventStore, clock: Clock, log: Log) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'old events could not be deleted');
    this.#sweep = every(this.#clock, { firstMs: SWEEP_PAUSE_MS, periodMs: SWEEP_MS, onError }, () => {
      const swept = this.#store.deleteBefore(this.#clock.now() - EVENT_AGE_MS, MAX_SWEPT_AT_ONCE);
      return swept === MAX_SWEPT_AT_ONCE ? SWEEP_PAUSE_MS : SWEEP_MS;
    });
  }

  async stop(): Promise<void> {
    this.#sweep?.stop();
  }

  emit<T extends EventType>(aid: Aid, type: T, data: EventPayloads[T], cause?: EventCause): number {
    const seq = this.#store.append(aid, type, this.#clock.now(), JSON.stringify(data), cause);
    this.#emitted.notify(aid, type, data);
    this.#appended.notify();
    return seq;
  }

  /** Registers a listener for each event. It is called inside the transaction of the event, for writes that belong to it. */
  onEmitted(listener: (aid: Aid, type: EventType, data: EventPayloads[EventType]) => void): () => void {
    return this.#emitted.add(listener);
  }

  /**
   * Registers a listener for new events. It is called inside the transaction, which may still be rolled back, so it
   * must read the log in a later turn of the event loop.
   */
  onAppended(listener: () => void): () => void {
    return this.#appended.add(listener);
  }

  /**
   * Returns the events of a stream after a cursor.
   * @param aid the stream of one agent, or null for all agents
   * @param afterSeq number of the last event seen, or 0 to start with the oldest one
   */
  page(aid: Aid | null, afterSeq: number, limit: number, types?: readonly EventType[]): EventPage {
    const { oldestSeq, lastSeq, prunedSeq } = this.bounds(aid);
    if (this.misses(afterSeq, prunedSeq)) return { events: [], lastSeq, oldestSeq, truncated: true };
    const events = this.#store.after(afterSeq, limit, { aid: aid ?? undefined, types });
    const last = events.length < limit ? undefined : events.at(-1);
    return { events, lastSeq: last?.seq ?? Math.max(lastSeq, afterSeq), oldestSeq, truncated: false };
  }

  /** Whether events after a cursor are missing from the log. */
  misses(afterSeq: number, prunedSeq: number): boolean {
    return (afterSeq !== 0 && afterSeq < prunedSeq) || afterSeq > this.#store.lastSeq();
  }

  bounds(aid: Aid | null): EventBounds {
    return this.#store.bounds(aid ?? undefined);
  }

  /** Returns the events after `seq`, without checking for deleted events. */
  after(seq: number, limit: number, filter?: EventFilter): readonly StoredEvent[] {
    return this.#store.after(seq, limit, filter);
  }

  /** The number of the newest event. */
  lastSeq(): number {
    return this.#store.lastSeq();
  }

  /** Deletes the events of a deleted agent. */
  forget(aid: Aid): void {
    this.#store.forget(aid);
  }
}
