/**
 * Live event streams. Subscribers pull: each has a position in the log and receives the events after it, from memory if
 * it keeps up. Flushes are shared, so that a thousand subscribers cost one pass and not one per event.
 */
import type { Clock } from '../../foundation/clock.ts';
import { EVENT_HEARTBEAT_MS } from '../../foundation/domain/events.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { EventBounds, EventFilter, StoredEvent } from '../../foundation/store/events.ts';
import type { PendingView } from './pending-counters.ts';
import {
  eventFrame,
  HEARTBEAT,
  openingFrame,
  positionFrame,
  RecentEvents,
  type SubscriberFilter,
  truncatedFrame,
} from './recent-events.ts';

/** Limit of subscribers of all streams. */
const MAX_SUBSCRIBERS = 1_000;
/** A subscriber that reads nothing for this time is disconnected, milliseconds. It may resume. */
export const MAX_BLOCKED_MS = 60_000;
/** Events that are read from the log in one step. */
export const MAX_READ_AT_ONCE = 1_000;
/** Pause between two flushes per subscriber, milliseconds: 40 ms with a thousand subscribers. */
const PAUSE_PER_SUBSCRIBER_MS = 0.04;
/** `Retry-After` of clients that are rejected because of too many subscribers, seconds. */
const BUSY_RETRY_S = 10;

export interface Subscription {
  /** The stream of one agent, or null for all agents. */
  readonly aid: Aid | null;
  /** All types if absent. */
  readonly types?: readonly string[] | undefined;
  /** Number of the last event seen, or 0 for all stored events. If absent, only new events. */
  readonly after?: number | undefined;
}

/** A sequence of events for streams. */
export interface EventSource {
  /** Registers a listener for new events, which may still be rolled back. It must read them later. */
  onAppended(listener: () => void): () => void;
  /** The number of the newest event. */
  lastSeq(): number;
  /** Returns the events after `seq`, in order. */
  after(seq: number, limit: number, filter?: EventFilter): readonly StoredEvent[];
  bounds(aid: Aid | null): EventBounds;
  /** Whether events after a cursor are missing. */
  misses(afterSeq: number, prunedSeq: number): boolean;
}

export class EventStreams implements Component {
  readonly #log: EventSource;
  readonly #pending: (aid: Aid | null) => PendingView;
  readonly #clock: Clock;
  readonly #logger: Log;
  readonly #maxSubscribers: number;
  readonly #subscribers = new Set<Subscriber>();
  readonly #backlog: Backlog;
  #recent: RecentEvents | null = null;
  #flush: RepeatingTask | null = null;
  #flushedAt = 0;
  #heartbeat: RepeatingTask | null = null;
  #forget = (): void => {};
  #stopped = false;

  /**
   * @param pending the pending counters of one agent, or of all
   * @param logger for errors. `log` is the event log
   */
  constructor(
    log: EventSource,
    pending: (aid: Aid | null) => PendingView,
    clock: Clock,
    logger: Log,
    maxSubscribers: number = MAX_SUBSCRIBERS,
  ) {
    this.#log = log;
    this.#pending = pending;
    this.#clock = clock;
    this.#logger = logger;
    this.#maxSubscribers = maxSubscribers;
    this.#backlog = {
      read: (filter, seq, until) => this.#readLog(filter, seq, until),
      loss: (filter, seq, known) => this.#loss(filter, seq, known),
    };
  }

  async start(): Promise<void> {
    this.#forget = this.#log.onAppended(() => this.#flushSoon());
    const onError = (error: unknown): void => this.#logger.error({ error }, 'events could not be sent');
    this.#heartbeat = every(this.#clock, { periodMs: EVENT_HEARTBEAT_MS, onError }, () => this.#beat());
    this.#flush = every(this.#clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#send());
  }

  /** Ends all streams. Clients reconnect when the daemon runs again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#forget();
    this.#flush?.stop();
    this.#heartbeat?.stop();
    for (const { outlet } of this.#subscribers) outlet.end();
    this.#subscribers.clear();
  }

  /** The number of open streams. */
  get active(): number {
    return this.#subscribers.size;
  }

  /** @throws SvcError `rate_limited` if there are too many streams */
  admit(): void {
    if (this.#stopped || this.#subscribers.size >= this.#maxSubscribers)
      throw new SvcError('rate_limited', {
        message: `At most ${this.#maxSubscribers} event streams can be open.`,
        details: { retry_after_s: BUSY_RETRY_S },
      });
  }

  /**
   * Opens a stream. It starts with the pending counters and the events after the cursor.
   * @returns callbacks for a drained and for a closed outlet
   * @throws SvcError as `admit`, before anything is written
   */
  subscribe(
    { aid, types, after }: Subscription,
    outlet: EventOutlet,
  ): { readonly drained: () => void; readonly closed: () => void } {
    this.admit();
    const recent = this.#catchUp();
    const filter: SubscriberFilter = {
      aid,
      types: types === undefined ? null : new Set(types),
      key: `${aid ?? ''} ${types === undefined ? '' : [...types].sort().join()}`,
    };
    const now = this.#clock.monotonic();
    const bounds = this.#log.bounds(aid);
    const { prunedSeq } = bounds;
    const missed = after !== undefined && this.#log.misses(after, prunedSeq);
    const seq = after === undefined ? recent.position : missed ? 0 : after;
    const subscriber = new Subscriber(filter, outlet, seq, prunedSeq);
    this.#subscribers.add(subscriber);
    const opening = [openingFrame(this.#pending(aid))];
    if (missed) opening.push(truncatedFrame(prunedSeq, bounds, now, aid));
    else if (after === undefined) opening.push(positionFrame(seq));
    subscriber.send(Buffer.concat(opening), now);
    subscriber.pump(recent, this.#backlog, now);
    return {
      drained: () => {
        subscriber.blockedSince = null;
        if (this.#subscribers.has(subscriber)) subscriber.pump(this.#catchUp(), this.#backlog, this.#clock.monotonic());
      },
      closed: () => this.#leave(subscriber),
    };
  }

  /** Ends the streams of a deleted agent. */
  endStreamsOf(aid: Aid): void {
    for (const subscriber of this.#subscribers) {
      if (subscriber.filter.aid !== aid) continue;
      this.#leave(subscriber);
      subscriber.outlet.end();
    }
  }

  #leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    // Without subscribers, the cache is not updated.
    if (this.#subscribers.size === 0) this.#recent = null;
  }

  /** Adds all committed events to the recent events and returns them. */
  #catchUp(): RecentEvents {
    const recent = (this.#recent ??= new RecentEvents(this.#log.lastSeq()));
    for (;;) {
      const events = this.#log.after(recent.position, MAX_READ_AT_ONCE);
      recent.add(events);
      if (events.length < MAX_READ_AT_ONCE) return recent;
    }
  }

  #flushSoon(): void {
    if (this.#subscribers.size === 0) return;
    const pause = this.#subscribers.size * PAUSE_PER_SUBSCRIBER_MS;
    this.#flush?.soon(Math.min(pause, Math.max(0, this.#flushedAt + pause - this.#clock.monotonic())));
  }

  #send(): void {
    this.#flushedAt = this.#clock.monotonic();
    const recent = this.#catchUp();
    for (const subscriber of this.#subscribers) subscriber.pump(recent, this.#backlog, this.#flushedAt);
  }

  #beat(): void {
    const now = this.#clock.monotonic();
    for (const subscriber of this.#subscribers) {
      const { blockedSince: fullSince } = subscriber;
      if (fullSince === null) subscriber.send(HEARTBEAT, now);
      else if (now - fullSince >= MAX_BLOCKED_MS) {
        this.#leave(subscriber);
        subscriber.outlet.destroy();
      }
    }
  }

  #readLog({ aid, types }: SubscriberFilter, seq: number, until: number): { frames: Buffer; seq: number } {
    const filter = { aid: aid ?? undefined, types: types === null ? undefined : [...types] };
    const events = this.#log.after(seq, MAX_LOG_PAGE, filter);
    const last = events.length < MAX_LOG_PAGE ? undefined : events.at(-1);
    const frames = events.filter((event) => event.seq <= until).map(eventFrame);
    return { frames: Buffer.concat(frames), seq: Math.min(until, last?.seq ?? until) };
  }

  #loss({ aid }: SubscriberFilter, seq: number, known: number): { frame: Buffer; prunedSeq: number } | null {
    const bounds = this.#log.bounds(aid);
    if (bounds.prunedSeq <= Math.max(seq, known)) return null;
    return { frame: truncatedFrame(seq, bounds, this.#clock.now(), aid), prunedSeq: bounds.prunedSeq };
  }
}

// One subscriber of a stream: its position and its backpressure.

/** Events that a subscriber reads from the log in one step if it is far behind. */
const MAX_LOG_PAGE = 256;

/** The destination of the frames of a subscriber. */
interface EventOutlet {
  /** Accepts the frames. Returns false if the caller should wait for a drain before the next write. */
  write(frames: Buffer): boolean;
  /** Ends the stream after pending writes. */
  end(): void;
  /** Closes the stream immediately. */
  destroy(): void;
}

/** The events that are no longer in the cache. */
interface Backlog {
  /** Frames after `seq`, up to the newest event at `until`. */
  read(filter: SubscriberFilter, seq: number, until: number): { readonly frames: Buffer; readonly seq: number };
  /** A frame that reports deleted events after `seq`, or null if there are none beyond those up to `known`. */
  loss(
    filter: SubscriberFilter,
    seq: number,
    known: number,
  ): { readonly frame: Buffer; readonly prunedSeq: number } | null;
}

/**
 * It has no queue, only a position, so a slow subscriber uses no memory except its socket buffer. When the socket
 * drains, it continues from the recent events, or from the log if it is too far behind.
 */
class Subscriber {
  readonly filter: SubscriberFilter;
  readonly outlet: EventOutlet;
  /** Number of the last event sent. */
  #seq: number;
  /** Deleted events up to this number have been reported. */
  #knownLoss: number;
  /** Since when writes are blocked, Unix milliseconds, or null. */
  blockedSince: number | null = null;

  constructor(filter: SubscriberFilter, outlet: EventOutlet, seq: number, knownLoss: number) {
    this.filter = filter;
    this.outlet = outlet;
    this.#seq = seq;
    this.#knownLoss = knownLoss;
  }

  /** Sends as many events as the outlet accepts. */
  pump(recent: RecentEvents, backlog: Backlog, now: number): void {
    while (this.blockedSince === null && this.#seq < recent.position) {
      if (recent.reaches(this.#seq)) {
        const { bytes, seq } = recent.batch(this.filter, this.#seq);
        this.#seq = seq;
        this.send(bytes, now);
        continue;
      }
      const loss = backlog.loss(this.filter, this.#seq, this.#knownLoss);
      if (loss !== null) {
        this.#knownLoss = loss.prunedSeq;
        this.send(loss.frame, now);
      }
      const { frames, seq } = backlog.read(this.filter, this.#seq, recent.position);
      this.#seq = seq;
      this.send(frames, now);
    }
  }

  /** Sends frames. The outlet must not be blocked. */
  send(frames: Buffer, now: number): void {
    if (frames.length > 0 && !this.outlet.write(frames)) this.blockedSince ??= now;
  }
}
