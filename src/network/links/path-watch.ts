/**
 * Notices connections whose path is dead, long before they time out: we have sent something, and not a packet comes.
 * It costs no packets while all is well: the engine's own signs of life are enough on a quiet connection. Only where
 * much came and then nothing more does, the other node is asked. A connection that nobody uses is not watched.
 */
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { SLEEP_MS } from '../../foundation/stall.ts';
import type { NodeSession } from './node-session.ts';
import { probe } from './probe.ts';

/** How often the connections in use are looked at, milliseconds. */
export const LOOK_MS = 250;
/** After so long without a packet where there was traffic, the other node is asked: milliseconds. */
export const ASK_AFTER_MS = 750;
/** So much makes traffic since the last time that it was asked, bytes: more than probes and signs of life. */
const TRAFFIC_BYTES = 4096;
/** How long something that we sent may stay without a packet in return, milliseconds … */
export const UNANSWERED_MS = 750;
/** … on a network that may be another one … */
export const SUSPECT_MS = 500;
/** … or so many round trips, where that is longer. */
const UNANSWERED_RTTS = 6;
/** How often a dead path is named again while it stays so, milliseconds. */
export const AGAIN_MS = 1_000;

/** Where a path is dead, all others are doubted; so long after that no more, milliseconds. */
export const DOUBT_MS = 5_000;

/** What is known of a connection that is watched. Times count looks, so our own stalls are in none of them. */
interface Watched {
  received: number;
  sent: number;
  /** Since a packet came. */
  silentMs: number;
  /** Since we sent something that must be answered, and no packet came; null where we did not. */
  unansweredMs: number | null;
  /** Bytes received when the other node was asked last. */
  asked: number;
  /** Streams on which the other node is asked just now: they are no use of the connection. */
  asking: number;
  /** It is watched until a packet comes, though nobody uses it. */
  isSuspect: boolean;
}

interface PathWatchDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly sessions: () => Iterable<NodeSession>;
  /** Whether a connection is to stay though no streams are open on it. */
  readonly isKept: (session: NodeSession) => boolean;
  /** Told of a connection whose path is dead, again and again while it is, and whether it is in use. */
  readonly onDead: (session: NodeSession, isUsed: boolean) => void;
}

/** What comes beside the QUIC connection is a sign of life as well; what goes there is not answered by packets of QUIC. */
function seenOf(session: NodeSession): { readonly received: number; readonly sent: number } {
  return { received: session.stats().bytesReceived, sent: session.connection.stats().bytesSent };
}

export class PathWatch {
  readonly #deps: PathWatchDependencies;
  readonly #watched = new WeakMap<NodeSession, Watched>();
  #looks: RepeatingTask | null = null;
  #lookedAt = 0;
  #doubtedAt = Number.NEGATIVE_INFINITY;

  constructor(dependencies: PathWatchDependencies) {
    this.#deps = dependencies;
  }

  start(): void {
    const { clock, log } = this.#deps;
    this.#lookedAt = clock.now();
    const onError = (error: unknown): void => log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(clock, { periodMs: LOOK_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  /** Asks all other nodes whether they are there: what connections use may have changed. */
  suspectAll(): void {
    for (const session of this.#deps.sessions()) this.suspect(session);
  }

  /** As `suspectAll`, of those in use, where one of them turned out to be dead; not again for a while. */
  doubtAll(): void {
    const now = this.#deps.clock.now();
    if (now >= this.#doubtedAt && now - this.#doubtedAt < DOUBT_MS) return;
    this.#doubtedAt = now;
    for (const session of this.#deps.sessions()) if (this.#isUsed(session)) this.suspect(session);
  }

  /** Asks another node whether it is there, unless it was asked and has not answered. */
  suspect(session: NodeSession): void {
    const known = this.#watched.get(session);
    const { received, sent } = seenOf(session);
    if (known !== undefined && known.unansweredMs !== null && known.received === received) {
      known.isSuspect = true;
      return;
    }
    const asking = known?.asking ?? 0;
    const fresh = { received, sent, silentMs: 0, unansweredMs: 0, asked: received, asking, isSuspect: true };
    this.#watched.set(session, fresh);
    this.#ask(session, fresh);
  }

  #isUsed(session: NodeSession): boolean {
    return session.streams > (this.#watched.get(session)?.asking ?? 0) || this.#deps.isKept(session);
  }

  #look(): void {
    const now = this.#deps.clock.now();
    const passedMs = now - this.#lookedAt;
    this.#lookedAt = now;
    // A clock that was set back tells nothing; one that leaps ahead is that of a machine which slept.
    if (passedMs > SLEEP_MS) return this.suspectAll();
    for (const session of this.#deps.sessions()) this.#lookAt(session);
  }

  #lookAt(session: NodeSession): void {
    const known = this.#watched.get(session);
    const isUsed = this.#isUsed(session);
    if (session.closed || (!isUsed && known?.isSuspect !== true)) {
      this.#watched.delete(session);
      return;
    }
    const { received, sent } = seenOf(session);
    if (known === undefined || received !== known.received) {
      if (known !== undefined) session.heard();
      const { asked, asking } = known ?? { asked: received, asking: 0 };
      const heard = { received, sent, silentMs: 0, unansweredMs: null, asked, asking, isSuspect: false };
      if (known === undefined) this.#watched.set(session, heard);
      else Object.assign(known, heard);
      return;
    }
    known.silentMs += LOOK_MS;
    if (known.unansweredMs !== null) known.unansweredMs += LOOK_MS;
    // What is sent right behind a packet may be no more than the receipt for it, which nobody answers.
    else if (known.silentMs > LOOK_MS && sent !== known.sent) known.unansweredMs = 0;
    known.sent = sent;
    if (known.unansweredMs === null && known.silentMs >= ASK_AFTER_MS && received - known.asked > TRAFFIC_BYTES) {
      Object.assign(known, { asked: received, unansweredMs: 0 });
      this.#ask(session, known);
    }
    const limitMs = Math.max(known.isSuspect ? SUSPECT_MS : UNANSWERED_MS, UNANSWERED_RTTS * session.connection.rtt());
    if (known.unansweredMs === null || known.unansweredMs < limitMs) return;
    known.unansweredMs -= AGAIN_MS;
    this.#deps.onDead(session, isUsed);
  }

  #ask(session: NodeSession, known: Watched): void {
    known.asking++;
    const answered = (): void => {
      known.asking--;
    };
    // What counts is whether packets come; the answer itself tells nothing more.
    detach(probe(session, this.#deps.clock).then(answered, answered));
  }
}
