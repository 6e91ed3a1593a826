/**
 * Waiting reads: a client that asks for new items, and would rather wait than ask again. The reads of an agent are
 * repeated when it has a new event.
 */
import type { Clock } from '../../foundation/clock.ts';
import { abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';
import type { EventLog } from './event-log.ts';
import { MAX_READ_AT_ONCE } from './event-streams.ts';

/** Limit of waiting reads. Each keeps a connection and a timer. */
export const MAX_WAITING_READS = 256;
/** `Retry-After` of clients that are rejected because of too many waiting reads, seconds. */
const BUSY_RETRY_S = 10;

export interface Wait {
  /** Events of this agent repeat the read; null: of every agent. */
  readonly aid: Aid | null;
  /** Longest wait, seconds. Undefined or 0: none. */
  readonly wait_s: number | undefined;
  /** Its signal aborts when it cancels or disconnects. It is created on demand. */
  readonly client: { readonly signal: AbortSignal };
}

interface WaitingRead {
  readonly aid: Aid | null;
  /** Reads again. Ends the wait if there is something, or in any case. */
  readonly read: (isLast: boolean) => void;
}

export class EventWaits implements Component {
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #logger: Log;
  readonly #waiting = new Set<WaitingRead>();
  /** Number of the last event seen. */
  #position = 0;
  #flush: RepeatingTask | null = null;
  #forget = (): void => {};
  #isRunning = false;

  /**
   * @param clock runs tasks without a delay in the next turn
   * @param logger for errors. `log` is the event log
   */
  constructor(log: EventLog, clock: Clock, logger: Log) {
    this.#log = log;
    this.#clock = clock;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#logger.error({ error }, 'waiting reads could not be repeated');
    this.#flush = every(this.#clock, { periodMs: UNTIL_REQUESTED, onError }, () => this.#repeat());
    this.#forget = this.#log.onAppended(() => {
      if (this.#waiting.size > 0) this.#flush?.soon();
    });
    this.#isRunning = true;
  }

  /** Ends all waits: each returns what it reads now. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#forget();
    this.#flush?.stop();
    for (const { read } of this.#waiting) read(true);
  }

  /** The number of waiting reads. */
  get active(): number {
    return this.#waiting.size;
  }

  /**
   * Reads, and repeats the read after each event of the agent until it returns something, or until the time is up.
   * @param read must be fast: it also runs for events of other kinds
   * @throws SvcError `rate_limited` if too many reads wait, `cancelled`, and the errors of `read`
   */
  async until<T>({ aid, wait_s = 0, client }: Wait, read: () => T, isEmpty: (value: T) => boolean): Promise<T> {
    const first = read();
    if (wait_s === 0 || !this.#isRunning || !isEmpty(first)) return first;
    const { signal } = client;
    if (signal.aborted) throw abortError(signal);
    if (this.#waiting.size >= MAX_WAITING_READS)
      throw new SvcError('rate_limited', {
        message: `At most ${MAX_WAITING_READS} reads can wait. Read without wait_s.`,
        details: { retry_after_s: BUSY_RETRY_S },
      });
    // In the same turn as the first read, so that no event is missed.
    if (this.#waiting.size === 0) this.#position = this.#log.lastSeq();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const waiting: WaitingRead = {
      aid,
      read: (isLast) => {
        try {
          const value = read();
          if (isLast || !isEmpty(value)) resolve(value);
        } catch (error) {
          reject(error);
        }
      },
    };
    const cancel = (): void => reject(abortError(signal));
    const timer = this.#clock.after(wait_s * 1000, () => waiting.read(true));
    signal.addEventListener('abort', cancel, { once: true });
    this.#waiting.add(waiting);
    try {
      return await promise;
    } finally {
      this.#waiting.delete(waiting);
      timer.cancel();
      signal.removeEventListener('abort', cancel);
    }
  }

  /** Ends the waits of a deleted agent: their next read fails. */
  forget(aid: Aid): void {
    for (const waiting of this.#waiting) if (waiting.aid === aid) waiting.read(true);
  }

  #repeat(): void {
    const aids = new Set<string>();
    for (;;) {
      const events = this.#log.after(this.#position, MAX_READ_AT_ONCE);
      for (const { aid } of events) aids.add(aid);
      this.#position = events.at(-1)?.seq ?? this.#position;
      if (events.length < MAX_READ_AT_ONCE) break;
    }
    for (const { aid, read } of this.#waiting) if (aid === null || aids.has(aid)) read(false);
  }
}
