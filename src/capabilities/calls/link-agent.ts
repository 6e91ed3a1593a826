/**
 * Keeps the link streams of one caller, one called agent and one access token open between requests. A new stream costs
 * about 2 ms, a reused one nothing.
 */
import { Agent, type ClientRequest, type RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { TracedRequest } from '../../foundation/traces/traced-request.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** How long a stream stays idle before it is closed, in milliseconds: shorter than on the called side. */
const IDLE_MS = 30_000;
/**
 * Maximum age of a stream that is reused, in milliseconds. The agent may move or replace a stolen key, and only opening
 * a stream checks its location and identity.
 */
const MAX_AGE_MS = 60_000;
/** Idle streams that are always allowed. */
const MAX_IDLE = 16;
/** Idle streams while other targets have few: as many as the concurrent calls to one agent. */
const MAX_IDLE_IN_BURST = 64;
/** Idle streams of all agents beyond `MAX_IDLE`. The called side limits the streams of a node. */
const MAX_SPARE = 128;

/** Counts the idle streams beyond `MAX_IDLE` across several agents. */
export interface SpareStreams {
  taken: number;
}

export interface LinkRequestOptions extends RequestOptions {
  /** Records the request. */
  readonly trace?: TracedRequest | undefined;
}

type Created = (error: Error | null, stream: Duplex) => void;

/** Socket methods that node:http calls and a plain stream lacks. */
const SOCKET_STUBS = {
  ref: () => {},
  unref: () => {},
  setKeepAlive: () => {},
  setNoDelay: () => {},
  setTimeout: () => {},
} as const;

/** A link stream, as node:http sees it. */
type Link = Duplex & Pick<LinkStream, 'isOutdated' | 'expectAnswer'>;

export class LinkAgent extends Agent {
  readonly #clock: Clock;
  readonly #spare: SpareStreams;
  readonly #openStream: (trace: TracedRequest | undefined) => Promise<LinkStream>;
  readonly #closed: () => void;
  readonly #openedAt = new WeakMap<Duplex, number>();
  /** Idle streams, and when they are closed, in the clock's time. */
  readonly #idle = new Map<Duplex, number>();
  /** Closes them. It is not restarted each time a stream is idle. */
  #timer: { readonly at: number; readonly timer: Timer } | null = null;
  /** Open streams, in use or idle. */
  open = 0;

  /**
   * @param spare shared by all agents of one caller
   * @param closed called when a stream has closed
   */
  constructor(
    clock: Clock,
    spare: SpareStreams,
    openStream: (trace: TracedRequest | undefined) => Promise<LinkStream>,
    closed: () => void,
  ) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE_IN_BURST, scheduling: 'lifo' });
    this.#clock = clock;
    this.#spare = spare;
    this.#openStream = openStream;
    this.#closed = closed;
  }

  /** Destroys the idle streams. If one stream is dead, the other idle streams usually are too. */
  dropIdle(): void {
    for (const stream of this.#idle.keys()) stream.destroy();
  }

  override destroy(): void {
    this.dropIdle();
    this.#stopTimer();
    super.destroy();
  }

  /** All streams of one agent lead to the same target. */
  override getName(): string {
    return 'link';
  }

  override createConnection({ trace }: LinkRequestOptions, created?: Created): undefined {
    this.#openStream(trace).then(
      (stream) => {
        trace?.next('wait');
        this.open++;
        this.#openedAt.set(stream, this.#clock.monotonic());
        stream.once('close', () => {
          this.open--;
          this.#forget(stream);
          if (this.open === 0) this.#stopTimer();
          this.#closed();
        });
        created?.(null, Object.assign(stream, SOCKET_STUBS));
      },
      // On failure, node:http expects a single argument.
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }

  override keepSocketAlive(stream: Link): boolean {
    const now = this.#clock.monotonic();
    const endsAt = Math.min(now + IDLE_MS, (this.#openedAt.get(stream) ?? 0) + MAX_AGE_MS);
    // A faster path may have replaced the path of the stream.
    if (stream.destroyed || stream.readableEnded || endsAt <= now || stream.isOutdated?.() === true) return false;
    const isSpare = this.#idle.size >= MAX_IDLE;
    if (isSpare && this.#spare.taken >= MAX_SPARE) return false;
    if (isSpare) this.#spare.taken++;
    stream.on('data', spoil).on('end', spoil);
    this.#idle.set(stream, endsAt);
    if (this.#timer === null || endsAt < this.#timer.at) this.#wait(endsAt, now);
    stream.resume();
    return true;
  }

  override reuseSocket(stream: Link, request: ClientRequest): void {
    this.#forget(stream);
    // node:http attaches its listeners in the next tick. No data may be lost before that.
    stream.pause();
    super.reuseSocket(stream, request);
    stream.expectAnswer?.();
    process.nextTick(resumeReused, stream);
  }

  #wait(at: number, now: number): void {
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: this.#clock.after(at - now, () => this.#closeIdle()) };
  }

  #stopTimer(): void {
    this.#timer?.timer.cancel();
    this.#timer = null;
  }

  #closeIdle(): void {
    this.#timer = null;
    const now = this.#clock.monotonic();
    for (const [stream, endsAt] of this.#idle) if (endsAt <= now) stream.destroy();
    const left = [...this.#idle].filter(([stream]) => !stream.destroyed).map(([, endsAt]) => endsAt);
    if (left.length > 0) this.#wait(Math.min(...left), now);
  }

  #forget(stream: Duplex): void {
    if (!this.#idle.delete(stream)) return;
    if (this.#idle.size >= MAX_IDLE) this.#spare.taken--;
    stream.off('data', spoil).off('end', spoil);
  }
}

/** Data or an end while no request is pending makes a stream unusable. */
function spoil(this: Duplex): void {
  this.destroy();
}

/** The end may have arrived before a listener was attached. */
function resumeReused(stream: Duplex): void {
  if (stream.readableEnded) stream.destroy();
  else stream.resume();
}
