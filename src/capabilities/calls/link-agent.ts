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
export class SpareStreams {
  taken = 0;
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

export class LinkAgent extends Agent {
  readonly #clock: Clock;
  readonly #spare: SpareStreams;
  readonly #openStream: (trace: TracedRequest | undefined) => Promise<LinkStream>;
  readonly #closed: () => void;
  readonly #idle = new Map<Duplex, { readonly timer: Timer; readonly spoil: () => void }>();
  readonly #openedAt = new WeakMap<Duplex, number>();
  /** Tells whether a faster path has replaced the path of the stream. */
  readonly #isOutdated = new WeakMap<Duplex, () => boolean>();
  #open = 0;

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

  /** Open streams, in use or idle. */
  get open(): number {
    return this.#open;
  }

  /** Destroys the idle streams. If one stream is dead, the other idle streams usually are too. */
  dropIdle(): void {
    for (const stream of this.#idle.keys()) stream.destroy();
  }

  override destroy(): void {
    this.dropIdle();
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
        this.#open++;
        this.#openedAt.set(stream, this.#clock.monotonic());
        this.#isOutdated.set(stream, () => stream.isOutdated?.() === true);
        stream.once('close', () => {
          this.#open--;
          this.#forget(stream);
          this.#closed();
        });
        created?.(null, Object.assign(stream, SOCKET_STUBS));
      },
      // On failure, node:http expects a single argument.
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }

  override keepSocketAlive(stream: Duplex): boolean {
    const left = (this.#openedAt.get(stream) ?? 0) + MAX_AGE_MS - this.#clock.monotonic();
    const isOver = stream.destroyed || stream.readableEnded || left <= 0 || this.#isOutdated.get(stream)?.() === true;
    if (isOver || !this.#hasRoom()) return false;
    // Data or an end while no request is pending makes the stream unusable.
    const spoil = (): void => void stream.destroy();
    stream.on('data', spoil).on('end', spoil);
    if (this.#idle.size >= MAX_IDLE) this.#spare.taken++;
    this.#idle.set(stream, { spoil, timer: this.#clock.after(Math.min(IDLE_MS, left), spoil) });
    stream.resume();
    return true;
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    this.#forget(stream);
    // node:http attaches its listeners in the next tick. No data may be lost before that.
    stream.pause();
    super.reuseSocket(stream, request);
    // The end may have arrived before a listener was attached.
    process.nextTick(() => (stream.readableEnded ? stream.destroy() : stream.resume()));
  }

  #hasRoom(): boolean {
    return this.#idle.size < MAX_IDLE || this.#spare.taken < MAX_SPARE;
  }

  #forget(stream: Duplex): void {
    const idle = this.#idle.get(stream);
    if (idle === undefined) return;
    this.#idle.delete(stream);
    if (this.#idle.size >= MAX_IDLE) this.#spare.taken--;
    idle.timer.cancel();
    stream.off('data', idle.spoil).off('end', idle.spoil);
  }
}
