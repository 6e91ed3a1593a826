/**
 * Whose connections to bound services are held. Descriptors are few, and an AID, a node key and an idle connection cost
 * a stranger nothing. If a level is full, the stranger that holds most loses its connection that was idle longest.
 */
import type { Clock } from '../../foundation/clock.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { type LinkEnds, pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';

/** Connections that one calling agent may hold at once to one called agent. */
export const MAX_CONNECTIONS_PER_CALLER = 6000;

/** A connection counts as used again if the last time is this long ago, milliseconds. */
const USED_AGAIN_MS = 1000;

/** Parts of all places: of one node, of the strangers of one source, and what strangers leave to callers let in by name. */
const NODE_PART = 1 / 2;
const SOURCE_PART = 3 / 4;
const RESERVED_PART = 1 / 8;

export interface InboundPlacesDependencies {
  readonly clock: Clock;
  /** Connections to services at one time, of all callers together; the process needs descriptors for more than these. */
  maxConnections(): number;
  /** True if the owner of the called agent let this caller in by name: strangers make room for it. */
  isNamed(link: Pick<LinkStream, 'caller' | 'called'>): boolean;
}

/** A connection that is held. */
export interface InboundPlace {
  /** A byte has passed. */
  readonly used: () => void;
  /** Gives the place back; again: nothing. */
  readonly leave: () => void;
}

export class InboundPlaces {
  readonly #deps: InboundPlacesDependencies;
  readonly #quota: Quota;

  constructor(dependencies: InboundPlacesDependencies) {
    this.#deps = dependencies;
    this.#quota = new Quota(() => {
      const total = dependencies.maxConnections();
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
   * A place for a connection; null if none is left for its caller, its node or its network.
   * @param cut ends the connection; called if it has to make room
   */
  take(link: LinkEnds, cut: () => void): InboundPlace | null {
    const { clock } = this.#deps;
    const share: QuotaShare | null = this.#quota.take(pairHolder(link, this.#deps.isNamed(link)), { onEvict: cut });
    if (share === null) return null;
    let usedAt = clock.now();
    return {
      used: () => {
        if (clock.now() - usedAt < USED_AGAIN_MS) return;
        usedAt = clock.now();
        share.touch();
      },
      leave: () => share.release(),
    };
  }
}
