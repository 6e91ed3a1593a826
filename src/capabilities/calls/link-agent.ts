/**
 * Keeps the link streams of one caller, one called agent and one access token open between
 * requests: a new stream costs about 2 ms, a used one nothing.
 */
import { Agent, type ClientRequest } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../foundation/clock.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** How long a stream waits for its next request, milliseconds: shorter than the called side waits. */
const IDLE_MS = 30_000;
/**
 * Age at which a stream takes no further request, milliseconds: the agent may have moved, or been
 * taken back from a stolen key, and only who opens a stream asks where and who it is.
 */
const MAX_AGE_MS = 60_000;
/** Streams that wait for a request, in any case. */
const MAX_IDLE = 16;
/** The same where few others wait: all that calls to one agent may use at once. */
const MAX_IDLE_IN_BURST = 64;
/** Streams beyond `MAX_IDLE` that wait, of all agents together: the called side takes only so many of one node. */
const MAX_SPARE = 128;

/** Counts the streams of several agents that wait beyond what each may keep in any case. */
export class SpareStreams {
  taken = 0;
}

type Created = (error: Error | null, stream: Duplex) => void;

/** What node:http calls on a socket and a plain stream does not have. */
const SOCKET_MANNERS = {
  ref: () => {},
  unref: () => {},
  setKeepAlive: () => {},
  setNoDelay: () => {},
  setTimeout: () => {},
} as const;

export interface LinkAgentDependencies {
  readonly clock: Clock;
  open(): Promise<Duplex & Pick<LinkStream, 'isOutdated'>>;
  /** Told whenever a stream has closed. */
  closed(): void;
  /** Shared by the agents of one caller. */
  readonly spare: SpareStreams;
}

export class LinkAgent extends Agent {
  readonly #deps: LinkAgentDependencies;
  readonly #idle = new Map<Duplex, { readonly timer: Timer; readonly spoil: () => void }>();
  readonly #openedAt = new WeakMap<Duplex, number>();
  /** Whether a quicker way stands than that of a stream. */
  readonly #isOutdated = new WeakMap<Duplex, () => boolean>();
  #open = 0;

  constructor(dependencies: LinkAgentDependencies) {
    super({ keepAlive: true, maxFreeSockets: MAX_IDLE_IN_BURST, scheduling: 'lifo' });
    this.#deps = dependencies;
  }

  /** Streams that are open, in use or idle. */
  get open(): number {
    return this.#open;
  }

  /** Drops the streams that wait: after one was found dead the others most likely are. */
  dropIdle(): void {
    for (const stream of this.#idle.keys()) stream.destroy();
  }

  override destroy(): void {
    this.dropIdle();
    super.destroy();
  }

  /** All streams of one agent lead to the same place. */
  override getName(): string {
    return 'link';
  }

  override createConnection(_options: unknown, created?: Created): undefined {
    this.#deps.open().then(
      (stream) => {
        this.#open++;
        this.#openedAt.set(stream, this.#deps.clock.now());
        this.#isOutdated.set(stream, () => stream.isOutdated?.() === true);
        stream.once('close', () => {
          this.#open--;
          this.#forget(stream);
          this.#deps.closed();
        });
        created?.(null, Object.assign(stream, SOCKET_MANNERS));
      },
      // node:http passes one argument where there is no stream.
      (error: Error) => (created as ((error: Error) => void) | undefined)?.(error),
    );
  }

  override keepSocketAlive(stream: Duplex): boolean {
    const { clock } = this.#deps;
    const left = (this.#openedAt.get(stream) ?? 0) + MAX_AGE_MS - clock.now();
    const isOver = stream.destroyed || stream.readableEnded || left <= 0 || this.#isOutdated.get(stream)?.() === true;
    if (isOver || !this.#hasRoom()) return false;
    // Whatever comes while nothing was asked for, or its end: the stream is of no more use.
    const spoil = (): void => void stream.destroy();
    stream.on('data', spoil).on('end', spoil);
    if (this.#idle.size >= MAX_IDLE) this.#deps.spare.taken++;
    this.#idle.set(stream, { spoil, timer: clock.after(Math.min(IDLE_MS, left), spoil) });
    stream.resume();
    return true;
  }

  override reuseSocket(stream: Duplex, request: ClientRequest): void {
    this.#forget(stream);
    // node:http listens from the next tick on: nothing may pass before.
    stream.pause();
    super.reuseSocket(stream, request);
    // Its end may have come in between, unheard.
    process.nextTick(() => (stream.readableEnded ? stream.destroy() : stream.resume()));
  }

  #hasRoom(): boolean {
    return this.#idle.size < MAX_IDLE || this.#deps.spare.taken < MAX_SPARE;
  }

  #forget(stream: Duplex): void {
    const idle = this.#idle.get(stream);
    if (idle === undefined) return;
    this.#idle.delete(stream);
    if (this.#idle.size >= MAX_IDLE) this.#deps.spare.taken--;
    idle.timer.cancel();
    stream.off('data', idle.spoil).off('end', idle.spoil);
  }
}
