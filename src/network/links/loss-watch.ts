/** Decides that packet loss slows a link or tunnel connection down, so that it should continue on a lane. */
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { LinkStream } from './types.ts';

/** Shortest round-trip time for which a lane can be faster, milliseconds. */
export const LONG_PATH_MS = 10;
/** A connection that transferred less than this stays on its link, bytes. */
const MIN_MOVED_BYTES = 64 * 1024;
/** Fewer lost packets, or a smaller part of those sent, are normal. */
const MIN_LOST = 3;
const MIN_LOSS = 0.002;
/**
 * Congestion control that reacts to loss sends 1.22 / (round trip · √loss) packets per second (Mathis et al., 1997). If
 * a connection sends several times as much, something else limits it.
 */
const MATHIS = 1.22;
const SEVERAL = 3;
/** How long the path to a node counts as lossy, milliseconds. */
const LOSSY_MS: number = 10 * 60_000;
const MAX_LOSSY_NODES = 1024;

/** Nodes with recent packet loss, by key: the next connection to them need not measure it again. */
export function lossyNodes(clock: Clock): LruCache<string, true> {
  return new LruCache({ maxEntries: MAX_LOSSY_NODES, ttlMs: LOSSY_MS }, { clock });
}

interface PathCounts {
  readonly at: number;
  readonly sent: number;
  readonly lost: number;
}

/** The link of a watch. */
export type MeasuredLink = Pick<LinkStream, 'packets' | 'path' | 'nodeKey'>;

/** True if a lane could be faster than a link. Neither lanes nor links on this daemon count packets. */
export function isLong(link: Pick<LinkStream, 'packets' | 'path'>): boolean {
  if (link.packets === undefined) return false;
  const path = link.path();
  return path.isUpgraded !== true && path.rttMs >= LONG_PATH_MS;
}

function nodeOf({ nodeKey }: Pick<LinkStream, 'nodeKey'>): string {
  return toHex(nodeKey ?? new Uint8Array());
}

/** True if packets to the node at the other end were lost recently. */
export function isLossyNode(link: Pick<LinkStream, 'nodeKey'>, lossy: LruCache<string, true>): boolean {
  return lossy.get(nodeOf(link)) !== undefined;
}

/** Watches a link while the writer of its connection waits for it. */
export class LossWatch {
  readonly #link: MeasuredLink;
  readonly #lossy: LruCache<string, true>;
  readonly #clock: Clock;
  readonly #since: PathCounts;

  constructor(link: MeasuredLink, lossy: LruCache<string, true>, clock: Clock) {
    this.#link = link;
    this.#lossy = lossy;
    this.#clock = clock;
    this.#since = this.#counts();
  }

  /** @param moved bytes that the connection has transferred */
  isLossy(moved: number): boolean {
    if (!isLong(this.#link)) return false;
    if (isLossyNode(this.#link, this.#lossy)) return true;
    if (moved < MIN_MOVED_BYTES) return false;
    const now = this.#counts();
    const sent = now.sent - this.#since.sent;
    const lost = now.lost - this.#since.lost;
    if (lost < MIN_LOST || lost < MIN_LOSS * sent) return false;
    const perSecond = (1000 * sent) / Math.max(1, now.at - this.#since.at);
    if (perSecond > (SEVERAL * MATHIS * 1000) / (this.#link.path().rttMs * Math.sqrt(lost / sent))) return false;
    this.#lossy.set(nodeOf(this.#link), true);
    return true;
  }

  #counts(): PathCounts {
    return { at: this.#clock.monotonic(), ...(this.#link.packets?.() ?? { sent: 0, lost: 0 }) };
  }
}
