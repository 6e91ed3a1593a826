/**
 * Bounds what others can make this node send to hosts that they name. Whoever could have us open ports towards anybody
 * would have a reflector: so it is done for few, and only to hosts that a helper of ours has seen.
 */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { ipScope, networkOf, subscriberOf } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { RateLimiter } from '../../foundation/rate-limit.ts';
import { FIRST_MAPPED_PORT } from '../ports.ts';
import { perMinute } from './per-minute.ts';

/** Openings that one peer may cause in a minute, and at once. */
export const PUNCHES_PER_PEER = 6;
/** The same towards one host (an IPv4 address, an IPv6 /64), whoever asks. */
export const PUNCHES_PER_HOST = 12;
/** The same towards one network (an IPv4 /24 or IPv6 /48). */
export const PUNCHES_PER_NETWORK = 24;
/** The same of all together. */
export const MAX_PUNCHES = 120;
/** Openings of random ports that one peer may cause in a minute, and at once. */
export const SPRAYS_PER_PEER = 3;
/** The same towards one host, and towards one network. */
export const SPRAYS_PER_HOST = 3;
/** The same of all together. */
export const MAX_SPRAYS = 6;
/** Helpers on different networks that have to see a peer at a host before random ports of it are written to. */
export const MIN_WITNESSES = 2;
/** For how long a helper's word on where a peer is counts, milliseconds. */
export const WITNESS_TTL_MS = 30_000;
/** Peers whose witnesses are remembered. */
const MAX_WITNESSED = 1024;

/**
 * Whether an address that a helper names may be sent anything: no port of a service, and no host of our own networks that
 * a helper on the Internet cannot have seen.
 * @param helper where the helper is, as we see it
 */
export function mayDialAt(target: Address, helper: Address): boolean {
  return target.port >= FIRST_MAPPED_PORT && ipScope(target.host) >= ipScope(helper.host);
}

interface Limits {
  readonly perPeer: number;
  readonly perHost: number;
  readonly perNetwork: number;
  readonly all: number;
}

class Rates {
  readonly #peer: RateLimiter;
  readonly #host: RateLimiter;
  readonly #network: RateLimiter;
  readonly #all: RateLimiter;

  constructor({ perPeer, perHost, perNetwork, all }: Limits, dependencies: { readonly clock: Clock }) {
    this.#peer = perMinute(perPeer, dependencies);
    this.#host = perMinute(perHost, dependencies);
    this.#network = perMinute(perNetwork, dependencies);
    this.#all = perMinute(all, dependencies);
  }

  take(peer: string, ...hosts: readonly string[]): boolean {
    const each = (rate: RateLimiter, keyOf: (host: string) => string): boolean =>
      [...new Set(hosts.map(keyOf))].every((key) => rate.take(key));
    return (
      this.#peer.take(peer) &&
      each(this.#host, (host) => subscriberOf(host)) &&
      each(this.#network, (host) => networkOf(host) ?? host) &&
      this.#all.take('')
    );
  }
}

export class PunchGuard {
  readonly #punches: Rates;
  readonly #sprays: Rates;
  /** By peer: where which helper's network has seen it. */
  readonly #witnesses: LruCache<string, Map<string, string>>;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#punches = new Rates(
      { perPeer: PUNCHES_PER_PEER, perHost: PUNCHES_PER_HOST, perNetwork: PUNCHES_PER_NETWORK, all: MAX_PUNCHES },
      dependencies,
    );
    this.#sprays = new Rates(
      { perPeer: SPRAYS_PER_PEER, perHost: SPRAYS_PER_HOST, perNetwork: SPRAYS_PER_HOST, all: MAX_SPRAYS },
      dependencies,
    );
    this.#witnesses = new LruCache({ maxEntries: MAX_WITNESSED, ttlMs: WITNESS_TTL_MS }, dependencies);
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
    return this.#punches.take(toHex(peer), target.host, seenAt);
  }

  /** Whether random ports of a host may be written to, beyond what `mayPunch` allows; counts it. */
  maySpray(peer: Uint8Array, host: string): boolean {
    return this.witnesses(peer, host) >= MIN_WITNESSES && this.#sprays.take(toHex(peer), host);
  }
}
