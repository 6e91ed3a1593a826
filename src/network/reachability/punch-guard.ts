/**
 * Bounds what others can make this node send to hosts that they name. Whoever could have us open ports towards anybody
 * would have a reflector: so it is done for few, and only to hosts that a helper of ours has seen.
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

/** A number of times in a minute, all of which may come at once. */
export function perMinute(times: number): Rate {
  return { perSecond: times / SECONDS_PER_MINUTE, burst: times };
}

/** Openings that one peer may cause in a minute, and at once. */
export const PUNCHES_PER_PEER = 6;
/** The same of strangers, towards one IPv4 address or IPv6 /64. */
export const PUNCHES_PER_HOST = 12;
/** The same towards one IPv4 /24 or IPv6 /48. */
export const PUNCHES_PER_NETWORK = 24;
/** The same of all strangers. */
export const MAX_PUNCHES = 120;
/** Openings of random ports that one peer may cause in a minute, and at once. */
export const SPRAYS_PER_PEER = 3;
/** The same of strangers, towards one IPv4 address or IPv6 /64, and towards one IPv4 /24 or IPv6 /48. */
export const SPRAYS_PER_HOST = 3;
/** The same of all strangers, and of all other peers. */
export const MAX_SPRAYS = 6;
/** Helpers on different networks that have to see a peer at a host before random ports of it are written to. */
export const MIN_WITNESSES = 2;
/** For how long a helper's word on where a peer is counts, milliseconds. */
export const WITNESS_TTL_MS = 30_000;
/** Peers whose witnesses are remembered, and peers that are called. */
const MAX_WITNESSED = 1024;
/** For how long a peer that is called is no stranger, milliseconds. */
const CALLED_TTL_MS = 60_000;
const ALL = 'all';

/**
 * Whether an address that a helper names may be sent anything: no port of a service, and no host of our own networks that
 * a helper on the Internet cannot have seen.
 * @param helper where the helper is, as we see it
 */
export function mayDialAt(target: Address, helper: Address): boolean {
  return target.port >= FIRST_MAPPED_PORT && ipScope(target.host) >= ipScope(helper.host);
}

export class PunchGuard {
  readonly #known: Pick<KnownNodes, 'has'>;
  readonly #punches: RateQuota;
  readonly #sprays: RateQuota;
  /** Each spray fills tables of our own router, so peers that are no strangers have a limit in all, too. */
  readonly #namedSprays: RateLimiter;
  /** By peer: where which helper's network has seen it. */
  readonly #witnesses: LruCache<string, Map<string, string>>;
  readonly #called: LruCache<string, true>;

  constructor(clock: Clock, known: Pick<KnownNodes, 'has'>) {
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

  /** This node calls a peer: what strangers cause does not use up the peer's rates. */
  calls(peer: Uint8Array): void {
    this.#called.set(toHex(peer), true);
  }

  /**
   * Notes that a helper sees a peer somewhere.
   * @param helper where the helper is, as we see it
   */
  witness(peer: Uint8Array, host: string, helper: Address): void {
    const key = toHex(peer);
    const known = this.#witnesses.peek(key);
    const words = new Map(known);
    words.set(subscriberOf(helper.host), host);
    this.#witnesses.set(key, words);
  }

  /** How many helpers' networks see a peer at a host. */
  witnesses(peer: Uint8Array, host: string): number {
    const words = this.#witnesses.peek(toHex(peer));
    return words === undefined ? 0 : [...words.values()].filter((seen) => seen === host).length;
  }

  /**
   * Whether a few packets may be sent to where a helper sees a peer; counts them.
   * @param helper where the helper is: it cannot have seen a host of our own networks from the Internet
   * @param seenAt the host where it sees the peer, which pays too: who names another one could name ever new ones
   */
  mayPunch(peer: Uint8Array, target: Address, helper: Address, seenAt: string = target.host): boolean {
    if (!mayDialAt(target, helper)) return false;
    return this.#punches.takeAll([this.#holder(peer, target.host), this.#holder(peer, seenAt)]);
  }

  /** Whether random ports of a host may be written to, beyond what `mayPunch` allows; counts it. */
  maySpray(peer: Uint8Array, host: string): boolean {
    if (this.witnesses(peer, host) < MIN_WITNESSES) return false;
    const holder = this.#holder(peer, host);
    return this.#sprays.take(holder) && (!holder.named || this.#namedSprays.take(ALL));
  }

  /** A peer, and a host that is written to for it. */
  #holder(peer: Uint8Array, host: string): QuotaHolder {
    const node = toHex(peer);
    return { node, source: host, named: this.#called.peek(node) === true || this.#known.has(peer) };
  }
}
