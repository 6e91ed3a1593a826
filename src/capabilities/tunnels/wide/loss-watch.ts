/** Tells when the packet loss of a path holds a connection back, so that more lanes would help. */
import type { Clock } from '../../../foundation/clock.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import type { LossyNodes } from './lossy-nodes.ts';

/** What is known of a path; packets since its connection stands. */
export interface PathCounts {
  readonly sent: number;
  readonly lost: number;
  /** Milliseconds. */
  readonly rttMs: number;
}

/** What a connection must have moved, bytes: small exchanges stay on one lane. */
const MIN_MOVED_BYTES = 64 * 1024;
/** Lost packets that are no accident … */
const MIN_LOST = 3;
/** … and the part of those sent. */
const MIN_LOSS = 0.002;
/**
 * Congestion control that takes loss for a crowd sends 1.22 / (rtt · √loss) packets a second (Mathis
 * et al., 1997). What sends more than a few times this is held back by something else.
 */
const MATHIS = 1.22;
const FEW_TIMES = 3;

interface LossWatchOptions {
  readonly counts: () => PathCounts;
  /** By which the way to the node is known to others that watch it. */
  readonly node: string;
  readonly lossy: LossyNodes;
}

export class LossWatch {
  readonly #options: LossWatchOptions;
  readonly #clock: Clock;
  /** Where the writer began to wait. */
  #since: PathCounts & { readonly at: number };

  constructor(options: LossWatchOptions, dependencies: { readonly clock: Clock }) {
    this.#options = options;
    this.#clock = dependencies.clock;
    this.#since = this.#look();
  }

  /**
   * Looks again.
   * @param moved bytes that the connection has moved
   * @param waits whether its writer waits: otherwise nothing holds it back
   */
  isLossy(moved: number, waits: boolean): boolean {
    const { node, lossy } = this.#options;
    if (lossy.has(node)) return waits;
    const now = this.#look();
    if (!waits) this.#since = now;
    const sent = now.sent - this.#since.sent;
    const lost = now.lost - this.#since.lost;
    if (moved < MIN_MOVED_BYTES || lost < MIN_LOST || lost < MIN_LOSS * sent) return false;
    const perSecond = (1000 * sent) / Math.max(1, now.at - this.#since.at);
    const isHeldBack = perSecond <= (FEW_TIMES * MATHIS * 1000) / (Math.max(1, now.rttMs) * Math.sqrt(lost / sent));
    if (isHeldBack) lossy.add(node);
    return isHeldBack;
  }

  #look(): PathCounts & { readonly at: number } {
    return { ...this.#options.counts(), at: this.#clock.now() };
  }
}

/** What a link tells of its path. */
export function countsOf(link: Pick<LinkStream, 'packets' | 'path'>): PathCounts {
  return { ...(link.packets?.() ?? { sent: 0, lost: 0 }), rttMs: link.path().rttMs };
}
