/**
 * Limits the packets that peers can make this node send to third hosts. Without limits, this node could be used as a
 * reflector. Packets are sent only to hosts at which a helper has seen the peer.
 */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { ipScope, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { type Rate, RateLimiter, RateQuota } from '../../foundation/rate-limit.ts';
import type { KnownNodes } from '../known-nodes.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';

const SECONDS_PER_MINUTE = 60;

/** A rate per minute, with a burst of the same size. */
export function perMinute(times: number): Rate {
  return { perSecond: times / SECONDS_PER_MINUTE, burst: times };
}

/** Punches for one peer: rate per minute, and burst. */
export const PUNCHES_PER_PEER = 6;
/** Punches for strangers towards one IPv4 address or IPv6 /64. */
export const PUNCHES_PER_HOST = 12;
/** Punches for strangers towards one IPv4 /24 or IPv6 /48. */
export const PUNCHES_PER_NETWORK = 24;
/** Punches for all strangers. */
export const MAX_PUNCHES = 120;
/** Sprays (punches with random ports) for one peer: rate per minute, and burst. */
export const SPRAYS_PER_PEER = 3;
/** Sprays for strangers towards one IPv4 address or IPv6 /64, and towards one IPv4 /24 or IPv6 /48. */
export const SPRAYS_PER_HOST = 3;
/** Sprays for all strangers, and for all known peers. */
export const MAX_SPRAYS = 6;
/** Number of helpers in different networks that must see a peer at a host before random ports of that host are used. */
export const MIN_WITNESSES = 2;
/** How long an observation of a helper is valid, milliseconds. */
export const WITNESS_TTL_MS = 30_000;
/** Maximum number of peers with observations, and of called peers. */
const MAX_WITNESSED = 1024;
/** How long a called peer counts as known, milliseconds. */
const CALLED_TTL_MS = 60_000;
const ALL = 'all';

/**
 * Whether packets may be sent to an address that a helper named. Ports of well-known services are excluded, and so are
 * private hosts that a public helper cannot have seen.
 * @param helper the helper's address as this node sees it
 */
export function mayDialAt(target: Address, helper: Address): boolean {
  return target.port >= FIRST_MAPPED_PORT && ipScope(target.host) >= ipScope(helper.host);
}

export class PunchGuard {
  readonly #known: KnownNodes;
  readonly #punches: RateQuota;
  readonly #sprays: RateQuota;
  /** Limits known peers too, because each spray fills the NAT table of this node's own router. */
  readonly #namedSprays: RateLimiter;
  /** By peer: the host at which each helper's network has seen it. */
  readonly #witnesses: LruCache<string, Map<string, string>>;
  readonly #called: LruCache<string, true>;

  constructor(clock: Clock, known: KnownNodes) {
    this.#known = known;
    this.#punches = new RateQuota(
      {
        perKey: perMinute(PUNCHES_PER_PEER),
        perSource: perMinute(PUNCHES_PER_HOST),
        perNetwork: perMinute(PUNCHES_PER_NETWORK),
        strangers: perMinute(MAX_PUNCHES),
      },
      { clock },
    );
    this.#sprays = new RateQuota(
      {
        perKey: perMinute(SPRAYS_PER_PEER),
        perSource: perMinute(SPRAYS_PER_HOST),
        perNetwork: perMinute(SPRAYS_PER_HOST),
        strangers: perMinute(MAX_SPRAYS),
      },
      { clock },
    );
    this.#namedSprays = new RateLimiter({ ...perMinute(MAX_SPRAYS), maxKeys: 1 }, { clock });
    this.#witnesses = new LruCache({ maxEntries: MAX_WITNESSED, ttlMs: WITNESS_TTL_MS }, { clock });
    this.#called = new LruCache({ maxEntries: MAX_WITNESSED, ttlMs: CALLED_TTL_MS }, { clock });
  }

  /** Call when this node calls a peer, so that strangers cannot use up the rates for it. */
  markCalled(peer: Uint8Array): void {
    this.#called.set(toHex(peer), true);
  }

  /**
   * Records that a helper sees a peer at a host.
   * @param helper the helper's address as this node sees it
   */
  addWitness(peer: Uint8Array, host: string, helper: Address): void {
    const key = toHex(peer);
    const known = this.#witnesses.peek(key);
    const observations = new Map(known);
    observations.set(subscriberOf(helper.host), host);
    this.#witnesses.set(key, observations);
  }

  /** Number of helpers' networks that see a peer at a host. */
  countWitnesses(peer: Uint8Array, host: string): number {
    const observations = this.#witnesses.peek(toHex(peer));
    return observations === undefined ? 0 : [...observations.values()].filter((seen) => seen === host).length;
  }

  /**
   * Whether a few packets may be sent to an address of a peer. Counts against the rates.
   * @param helper the helper's address: a public helper cannot have seen a private host
   * @param seenAt the host where the helper sees the peer. It is charged too, because a peer could name ever new target
   *   hosts
   */
  mayPunch(peer: Uint8Array, target: Address, helper: Address, seenAt: string = target.host): boolean {
    if (!mayDialAt(target, helper)) return false;
    return this.#punches.takeAll([this.#holder(peer, target.host), this.#holder(peer, seenAt)]);
  }

  /** Whether random ports of a host may be used, in addition to `mayPunch`. Counts against the rates. */
  maySpray(peer: Uint8Array, host: string): boolean {
    if (this.countWitnesses(peer, host) < MIN_WITNESSES) return false;
    const holder = this.#holder(peer, host);
    return this.#sprays.take(holder) && (!holder.named || this.#namedSprays.take(ALL));
  }

  /** The peer and the target host, as a quota counts them. */
  #holder(peer: Uint8Array, host: string): QuotaHolder {
    const node = toHex(peer);
    return { node, source: host, named: this.#called.peek(node) === true || this.#known.has(peer) };
  }
}
