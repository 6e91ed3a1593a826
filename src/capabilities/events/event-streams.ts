/**
 * Live streams of events. Subscribers pull: each has a place in the log and is given what lies
 * behind it, from memory while it keeps up. What is flushed together goes out together, so that a
 * thousand subscribers cost one pass and not one per event.
 */
import type { Clock } from '../../foundation/clock.ts';
import { EVENT_HEARTBEAT_MS } from '../../foundation/domain/events.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { EventBounds, EventFilter, StoredEvent } from '../../foundation/store/events.ts';
import { eventFrame, HEARTBEAT, openingFrame, positionFrame, truncatedFrame } from './frames.ts';
import type { PendingView } from './pending-counters.ts';
import { RecentEvents, type Wish } from './recent-events.ts';
import { type Backlog, type EventOutlet, MAX_LOG_PAGE, Subscriber } from './subscriber.ts';

/** Subscribers at a time, all streams together. */
export const MAX_SUBSCRIBERS = 1_000;
/** A subscriber that takes nothing for this long is cut off, milliseconds; it may resume. */
export const MAX_FULL_MS = 60_000;
/** Events that are read from the log at once. */
const MAX_READ_AT_ONCE = 1_000;
/** Pause between two flushes for each subscriber, milliseconds: 40 ms with a thousand of them. */
const PAUSE_PER_SUBSCRIBER_MS = 0.04;
/** What a client is told to wait where there are too many subscribers, seconds. */
const BUSY_RETRY_S = 10;

export interface Subscription {
  /** One agent's stream; null for all of them. */
  readonly aid: Aid | null;
  /** Left out: every kind. */
  readonly types?: readonly string[] | undefined;
  /** Number of the last event that was seen, 0 for the whole buffer; left out: only what comes from now on. */
  readonly after?: number | undefined;
}

/** A sequence of events that streams are given from. */
export interface EventSource {
  /** Tells of events that were or are about to be added; who hears it looks later. */
  onAppended(listener: () => void): () => void;
  /** The number of the newest event. */
  lastSeq(): number;
  /** Events behind `seq`, in order. */
  after(seq: number, limit: number, filter?: EventFilter): readonly StoredEvent[];
  bounds(aid: Aid | null): EventBounds;
  /** True for a cursor from which a stream cannot be taken up without a gap. */
  misses(afterSeq: number, prunedSeq: number): boolean;
}

export interface EventStreamsDependencies {
  readonly log: EventSource;
  readonly clock: Clock;
  /** Told of faults; `log` is that of the events. */
  readonly logger: Log;
  /** What waits for one agent, or for all. */
  readonly pending: (aid: Aid | null) => PendingView;
}

export class EventStreams implements Component {
  readonly #deps: EventStreamsDependencies;
  readonly #maxSubscribers: number;
  readonly #subscribers = new Set<Subscriber>();
  readonly #backlog: Backlog;
  #recent: RecentEvents | null = null;
  #flush: RepeatingTask | null = null;
  #flushedAt = 0;
  #heartbeat: RepeatingTask | null = null;
  #forget = (): void => {};
  #stopped = false;

  constructor(dependencies: EventStreamsDependencies, maxSubscribers: number = MAX_SUBSCRIBERS) {
    this.#deps = dependencies;
    this.#maxSubscribers = maxSubscribers;
    this.#backlog = {
      read: (wish, seq, until) => this.#readLog(wish, seq, until),
      loss: (wish, seq, known) => this.#loss(wish, seq, known),
    };
  }

  async start(): Promise<void> {
    const { log, clock, logger } = this.#deps;
    this.#forget = log.onAppended(() => this.#flushSoon());
    const onError = (error: unknown): void => logger.error({ error }, 'events could not be sent');
    this.#heartbeat = every(clock, { periodMs: EVENT_HEARTBEAT_MS, onError }, () => this.#beat());
    this.#flush = every(clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#send());
  }

  /** Ends all streams: clients come back when the daemon does. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#forget();
    this.#flush?.stop();
    this.#heartbeat?.stop();
    for (const { outlet } of this.#subscribers) outlet.end();
    this.#subscribers.clear();
  }

  /** Streams that are open. */
  get active(): number {
    return this.#subscribers.size;
  }

  /** @throws SvcError `rate_limited` where there is no room for another stream */
  admit(): void {
    if (this.#stopped || this.#subscribers.size >= this.#maxSubscribers)
      throw new SvcError('rate_limited', {
        message: `At most ${this.#maxSubscribers} event streams are open at a time.`,
        details: { retry_after_s: BUSY_RETRY_S },
      });
  }

  /**
   * Begins a stream: what waits, then what lies behind the cursor, then what comes.
   * @returns how to say that the outlet takes frames again, and that it is gone
   * @throws SvcError as `admit`, with nothing written
   */
  subscribe(
    { aid, types, after }: Subscription,
    outlet: EventOutlet,
  ): { readonly drained: () => void; readonly closed: () => void } {
    this.admit();
    const recent = this.#catchUp();
    const wish: Wish = {
      aid,
      types: types === undefined ? null : new Set(types),
      key: `${aid ?? ''} ${types === undefined ? '' : [...types].sort().join()}`,
    };
    const now = this.#deps.clock.now();
    const bounds = this.#deps.log.bounds(aid);
    const { prunedSeq } = bounds;
    const missed = after !== undefined && this.#deps.log.misses(after, prunedSeq);
    const seq = after === undefined ? recent.position : missed ? 0 : after;
    const subscriber = new Subscriber(wish, outlet, seq, prunedSeq);
    this.#subscribers.add(subscriber);
    const opening = [openingFrame(this.#deps.pending(aid))];
    if (missed) opening.push(truncatedFrame(prunedSeq, bounds, now, aid));
    else if (after === undefined) opening.push(positionFrame(seq));
    subscriber.send(Buffer.concat(opening), now);
    subscriber.pump(recent, this.#backlog, now);
    return {
      drained: () => {
        subscriber.fullSince = null;
        if (this.#subscribers.has(subscriber)) subscriber.pump(this.#catchUp(), this.#backlog, this.#deps.clock.now());
      },
      closed: () => this.#leave(subscriber),
    };
  }

  /** Ends the streams of an agent that is gone. */
  endStreamsOf(aid: Aid): void {
    for (const subscriber of this.#subscribers) {
      if (subscriber.wish.aid !== aid) continue;
      this.#leave(subscriber);
      subscriber.outlet.end();
    }
  }

  #leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    // Without subscribers nobody keeps it up to date.
    if (this.#subscribers.size === 0) this.#recent = null;
  }

  /** The recent events with everything that was committed until now. */
  #catchUp(): RecentEvents {
    const recent = (this.#recent ??= new RecentEvents(this.#deps.log.lastSeq()));
    for (;;) {
      const events = this.#deps.log.after(recent.position, MAX_READ_AT_ONCE);
      recent.add(events);
      if (events.length < MAX_READ_AT_ONCE) return recent;
    }
  }

  #flushSoon(): void {
    if (this.#subscribers.size === 0) return;
    const pause = this.#subscribers.size * PAUSE_PER_SUBSCRIBER_MS;
    this.#flush?.soon(Math.min(pause, Math.max(0, this.#flushedAt + pause - this.#deps.clock.now())));
  }

  #send(): void {
    this.#flushedAt = this.#deps.clock.now();
    const recent = this.#catchUp();
    for (const subscriber of this.#subscribers) subscriber.pump(recent, this.#backlog, this.#flushedAt);
  }

  #beat(): void {
    const now = this.#deps.clock.now();
    for (const subscriber of this.#subscribers) {
      const { fullSince } = subscriber;
      if (fullSince === null) subscriber.send(HEARTBEAT, now);
      else if (now - fullSince >= MAX_FULL_MS) {
        this.#leave(subscriber);
        subscriber.outlet.destroy();
      }
    }
  }

  #readLog({ aid, types }: Wish, seq: number, until: number): { frames: Buffer; seq: number } {
    const filter = { aid: aid ?? undefined, types: types === null ? undefined : [...types] };
    const events = this.#deps.log.after(seq, MAX_LOG_PAGE, filter);
    const last = events.length < MAX_LOG_PAGE ? undefined : events.at(-1);
    const frames = events.filter((event) => event.seq <= until).map(eventFrame);
    return { frames: Buffer.concat(frames), seq: Math.min(until, last?.seq ?? until) };
  }

  #loss({ aid }: Wish, seq: number, known: number): { frame: Buffer; prunedSeq: number } | null {
    const bounds = this.#deps.log.bounds(aid);
    if (bounds.prunedSeq <= Math.max(seq, known)) return null;
    return { frame: truncatedFrame(seq, bounds, this.#deps.clock.now(), aid), prunedSeq: bounds.prunedSeq };
  }
}
