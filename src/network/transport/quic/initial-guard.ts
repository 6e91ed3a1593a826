/**
 * Keeps a flood of first packets from the engine, which would begin a handshake for each, at some 370 KB and a
 * millisecond. The engine does not say where they come from; so where too many are unfinished, a short-lived child that
 * inherits the sockets looks at what stands in their queues, and has the kernel drop the first packets of those who send
 * most of them, for a while. Linux and a Node with `node:ffi` only, as `receive-buffer.ts`; elsewhere a flood holds new
 * connections up.
 */
import { type Backoff, backoff } from '../../../foundation/backoff.ts';
import { fromHex } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { Log } from '../../../foundation/log.ts';
import { filterOf, MAX_REFUSED_SOURCES } from './packet-filter.ts';
import { lookAtQueues } from './queue-look.ts';

/** How long first packets of a source, or most of all, are dropped; longer each time that it goes on behind it, milliseconds. */
const REFUSE: Backoff = { firstMs: 60_000, maxMs: 600_000 };
/** A flood that comes back within this time after another goes on, milliseconds. */
const CALM_MS = 60_000;
/** From a look that found somebody to the next at least, and from another, milliseconds. */
const LOOK_AGAIN_MS = 5_000;
const MISSED_AGAIN_MS = 500;
/** How long a look takes at most, milliseconds: on a busy machine it sees little. */
const LOOK_MS = 3_000;
/** A source that sends one of so many stands out. */
const STANDS_OUT = 8;

interface InitialGuardDependencies {
  /** The listening sockets. */
  readonly descriptors: () => readonly number[];
  readonly clock: Clock;
  readonly log: Log;
}

export class InitialGuard {
  readonly #deps: InitialGuardDependencies;
  readonly #refused = new Set<string>();
  #thinned = false;
  #looking: Promise<void> | null = null;
  #stopped = false;
  #lookAgainAt = Number.NEGATIVE_INFINITY;
  #floods = 0;
  #relaxed: Timer | null = null;
  #relaxedAt = Number.NEGATIVE_INFINITY;

  constructor(dependencies: InitialGuardDependencies) {
    this.#deps = dependencies;
  }

  /** Sources whose first packets are dropped, in hex. */
  get refused(): ReadonlySet<string> {
    return this.#refused;
  }

  /** To be called while too many handshakes are unfinished. Settles when something has been done about it, or not. */
  async alarm(): Promise<void> {
    const { clock, descriptors } = this.#deps;
    if (this.#stopped || clock.now() < this.#lookAgainAt) return;
    this.#looking ??= (async () => {
      const child = await lookAtQueues(descriptors(), LOOK_MS);
      // Where it cannot be done once, it never can.
      if (child === null) this.#stopped = true;
      const filter = child === null ? null : this.#decide(child.sources);
      await child?.answer(filter ?? new Uint8Array());
      this.#lookAgainAt = clock.now() + (filter === null ? MISSED_AGAIN_MS : LOOK_AGAIN_MS);
    })().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  /** Settles when no child holds the sockets any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#relaxed?.cancel();
    await this.#looking?.catch(() => {});
  }

  /** What to drop from now on; null where too little was seen to say. */
  #decide(sources: ReadonlyMap<string, number>): Uint8Array | null {
    const total = sources.values().reduce((sum, count) => sum + count, 0);
    if (total === 0 || this.#stopped) return null;
    const many = [...sources].filter(([, count]) => count * STANDS_OUT >= total);
    for (const [source] of many) if (this.#refused.size < MAX_REFUSED_SOURCES) this.#refused.add(source);
    if (many.length === 0) this.#thinned = true;
    this.#deps.log.warn(
      { sources: [...this.#refused], all: this.#thinned },
      'first packets of QUIC are dropped: a flood',
    );
    const now = this.#deps.clock.now();
    if (this.#relaxed === null) this.#floods = now - this.#relaxedAt < CALM_MS ? this.#floods + 1 : 1;
    this.#relaxed ??= this.#deps.clock.after(backoff(REFUSE, this.#floods), () => this.#relax());
    return this.#filter();
  }

  #filter(): Uint8Array {
    const sources = [...this.#refused].map((source) => fromHex(source) ?? new Uint8Array());
    return filterOf({ sources, thinned: this.#thinned });
  }

  /** Lets all pass again, to see whether the flood is over. */
  #relax(): void {
    this.#relaxed = null;
    this.#relaxedAt = this.#deps.clock.now();
    const before = this.#looking;
    this.#looking = (async () => {
      await before?.catch(() => {});
      this.#refused.clear();
      this.#thinned = false;
      const child = await lookAtQueues(this.#deps.descriptors(), 0);
      await child?.answer(null);
    })().finally(() => {
      this.#looking = null;
    });
    detach(this.#looking);
  }
}
