/**
 * Notices that the path of a connection is dead, long before the connection times out: we sent something, and no packet
 * comes. While all is well this costs no packets, because the engine's own signs of life are enough on a quiet connection.
 * Only if much arrived and then nothing does, the other node is asked. An unused connection is not watched.
 */
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { type NodeSession, probe } from './session.ts';

/** Interval of the looks at all connections, milliseconds. */
export const LOOK_MS = 250;
/** Silence after traffic until the other node is asked, milliseconds. */
export const ASK_AFTER_MS = 750;
/** More than this since the last question is traffic, bytes. Probes and signs of life need less. */
const TRAFFIC_BYTES = 4096;
/** Time for a packet in return for something that we sent, milliseconds … */
export const UNANSWERED_MS = 750;
/** … if the network may have changed … */
export const SUSPECT_MS = 500;
/** … or as many round trips, if that is longer. */
const UNANSWERED_RTTS = 6;
/** Interval of the reports of a path that stays dead, milliseconds. */
const AGAIN_MS = 1_000;

/** What is known of a watched connection. Times count looks, so they do not include stalls of this process. */
interface Watched {
  received: number;
  sent: number;
  /** Since a packet came. */
  silentMs: number;
  /** Since we sent something that requires an answer, and no packet came. Null if we sent nothing. */
  unansweredMs: number | null;
  /** Bytes received at the last question. */
  asked: number;
  /** Watched until a packet comes, even if unused. */
  isSuspect: boolean;
}

export class PathHealth {
  readonly #session: NodeSession;
  readonly #clock: Clock;
  #watched: Watched | null = null;
  /** Our own questions under way: they do not count as use of the connection. */
  #asking = 0;

  constructor(session: NodeSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  get isUsed(): boolean {
    return this.#session.streams > this.#asking;
  }

  /** Asks the other node whether it is there, unless it was asked and has not answered. */
  suspect(): void {
    const known = this.#watched;
    const { received, sent } = this.#traffic();
    if (known !== null && known.unansweredMs !== null && known.received === received) {
      known.isSuspect = true;
      return;
    }
    this.#watched = { received, sent, silentMs: 0, unansweredMs: 0, asked: received, isSuspect: true };
    this.#ask();
  }

  /**
   * To be called every `LOOK_MS`.
   * @param isWatched somebody uses or keeps the connection
   * @returns true if the path is dead: again and again while it is
   */
  look(isWatched: boolean): boolean {
    const session = this.#session;
    const known = this.#watched;
    if (session.closed || (!isWatched && known?.isSuspect !== true)) {
      this.#watched = null;
      return false;
    }
    const { received, sent } = this.#traffic();
    if (known === null || received !== known.received) {
      if (known !== null) session.heard();
      const asked = known?.asked ?? received;
      this.#watched = { received, sent, silentMs: 0, unansweredMs: null, asked, isSuspect: false };
      return false;
    }
    known.silentMs += LOOK_MS;
    if (known.unansweredMs !== null) known.unansweredMs += LOOK_MS;
    // What we send right after a packet may be only its receipt, which nobody answers.
    else if (known.silentMs > LOOK_MS && sent !== known.sent) known.unansweredMs = 0;
    known.sent = sent;
    if (known.unansweredMs === null && known.silentMs >= ASK_AFTER_MS && received - known.asked > TRAFFIC_BYTES) {
      Object.assign(known, { asked: received, unansweredMs: 0 });
      this.#ask();
    }
    const limitMs = Math.max(known.isSuspect ? SUSPECT_MS : UNANSWERED_MS, UNANSWERED_RTTS * session.connection.rtt());
    if (known.unansweredMs === null || known.unansweredMs < limitMs) return false;
    known.unansweredMs -= AGAIN_MS;
    return true;
  }

  /** A packet beside QUIC is a sign of life as well. What goes beside QUIC gets no answer in packets of QUIC. */
  #traffic(): { readonly received: number; readonly sent: number } {
    return { received: this.#session.stats().bytesReceived, sent: this.#session.connection.stats().bytesSent };
  }

  #ask(): void {
    this.#asking++;
    const answered = (): void => {
      this.#asking--;
    };
    // Only packets count. The answer itself says nothing more.
    detach(probe(this.#session, this.#clock).then(answered, answered));
  }
}
