/**
 * Limits the connections to bound services. Descriptors are few, and AIDs, node keys and idle connections cost a stranger
 * nothing. If a level is full, the stranger with the most connections loses its idlest connection.
 */
import type { Clock } from '../../foundation/clock.ts';
import { Quota, type QuotaHolder, type QuotaShare } from '../../foundation/quota.ts';

/** Largest number of connections from one calling agent to one called agent. */
export const MAX_CONNECTIONS_PER_CALLER = 6000;

/** Shortest time between two reports of use, milliseconds. */
const USED_AGAIN_MS = 1000;

/** Parts of all places: for one node, for the strangers of one source, and reserved for callers on the access list. */
const NODE_PART = 1 / 2;
const SOURCE_PART = 3 / 4;
const RESERVED_PART = 1 / 8;

/** The place of a connection. */
export interface InboundPlace {
  /** Reports use. */
  readonly used: () => void;
  /** Gives the place back. No effect if called again. */
  readonly leave: () => void;
}

export class InboundPlaces {
  readonly #clock: Clock;
  readonly #quota: Quota;

  /** @param maxConnections connections of all callers: the process needs descriptors for other things too */
  constructor(clock: Clock, maxConnections: () => number) {
    this.#clock = clock;
    this.#quota = new Quota(() => {
      const total = maxConnections();
      return {
        perKey: MAX_CONNECTIONS_PER_CALLER,
        perNode: Math.ceil(total * NODE_PART),
        perSource: Math.ceil(total * SOURCE_PART),
        total,
        reserved: Number.isFinite(total) ? Math.floor(total * RESERVED_PART) : 0,
      };
    });
  }

  /**
   * A place for a connection. Null if its caller, its node or its network has no room.
   * @param cut ends the connection if it is evicted
   */
  take(holder: QuotaHolder, cut: () => void): InboundPlace | null {
    const clock = this.#clock;
    const share: QuotaShare | null = this.#quota.take(holder, { onEvict: cut });
    if (share === null) return null;
    let usedAt = clock.monotonic();
    return {
      used: () => {
        if (clock.monotonic() - usedAt < USED_AGAIN_MS) return;
        usedAt = clock.monotonic();
        share.touch();
      },
      leave: () => share.release(),
    };
  }
}
