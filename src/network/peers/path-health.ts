/**
 * Detects a dead path long before the connection times out: packets leave, and none returns. A healthy connection needs
 * no extra packets, because the engine's keep-alives are enough. A probe is sent only if traffic stops suddenly. An
 * unused connection is not watched.
 */
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { type NodeSession, probe } from './session.ts';

/** Interval of the checks of all connections, milliseconds. */
export const LOOK_MS = 250;
/** Silence after traffic until a probe is sent, milliseconds. */
export const ASK_AFTER_MS = 750;
/** More bytes than this since the last probe are traffic. Probes and keep-alives need fewer. */
const TRAFFIC_BYTES = 4096;
/** Timeout for a packet in return, milliseconds … */
export const UNANSWERED_MS = 750;
/** … if the network may have changed … */
export const SUSPECT_MS = 500;
/** … or this number of round trips, if that is longer. */
const UNANSWERED_RTTS = 6;
/**
 * On a lossy path, all of these grow by the share of lost packets times this number. QUIC waits twice as long after each
 * lost probe (RFC 9002, 6.2.1), so a living path that loses 20 % of the packets is often silent for a second.
 */
const LOSS_WEIGHT = 15;
/** Packets of a connection from which the share of lost ones is known. */
const LOSS_SAMPLE = 100;
/** Interval of the reports while a path is dead, milliseconds. */
const AGAIN_MS = 1_000;

/** The state of a watched connection. Times count checks, so they exclude stalls of this process. */
interface Watched {
  received: number;
  sent: number;
  /** Since the last packet. */
  silentMs: number;
  /** Since this node sent something that requires an answer. Null if it did not. */
  unansweredMs: number | null;
  /** Bytes received at the last probe. */
  asked: number;
  /** Watched until the next packet, even if unused. */
  isSuspect: boolean;
}

export class PathHealth {
  readonly #session: NodeSession;
  readonly #clock: Clock;
  #watched: Watched | null = null;
  /** Number of pending probes. They do not count as use of the connection. */
  #asking = 0;

  constructor(session: NodeSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  get isUsed(): boolean {
    return this.#session.streams > this.#asking;
  }

  /** Sends a probe, unless one is pending. */
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
   * @param isWatched true if the connection is used or kept
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
    // A packet right after a received one may be only its receipt, which requires no answer.
    else if (known.silentMs > LOOK_MS && sent !== known.sent) known.unansweredMs = 0;
    known.sent = sent;
    if (known.unansweredMs === null && known.silentMs >= ASK_AFTER_MS && received - known.asked > TRAFFIC_BYTES) {
      Object.assign(known, { asked: received, unansweredMs: 0 });
      this.#ask();
    }
    if (known.unansweredMs === null || known.unansweredMs < this.#limitMs(known)) return false;
    known.unansweredMs -= AGAIN_MS;
    return true;
  }

  #limitMs({ isSuspect }: Watched): number {
    const { connection } = this.#session;
    const { packetsSent, packetsLost } = connection.stats();
    const loss = packetsLost / Math.max(packetsSent, LOSS_SAMPLE);
    const lossless = Math.max(isSuspect ? SUSPECT_MS : UNANSWERED_MS, UNANSWERED_RTTS * connection.rtt());
    return lossless * (1 + LOSS_WEIGHT * loss);
  }

  /** Received packets of the faster transport are signs of life too. Sent ones get no answer over QUIC. */
  #traffic(): { readonly received: number; readonly sent: number } {
    return { received: this.#session.stats().bytesReceived, sent: this.#session.connection.stats().bytesSent };
  }

  #ask(): void {
    this.#asking++;
    const answered = (): void => {
      this.#asking--;
    };
    // Only packets count, so the answer is not read.
    detach(probe(this.#session, this.#clock).then(answered, answered));
  }
}
