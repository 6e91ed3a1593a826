/** Our address as others see it. One reporter could lie: an address counts when enough different ones report it. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { hostKeyOf } from './node-address.ts';

/** Reporters whose last word is remembered. */
const MAX_REPORTERS = 32;
/** For how long a report counts. */
const REPORT_TTL_MS = 20 * 60_000;

export class ObservedAddresses {
  readonly #reports = new Map<string, { readonly seen: Address; readonly at: number }>();
  readonly #clock: Clock;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  /** Notes what a peer says our address is; true where it said something else, or nothing, before. */
  add(reporter: Address, seen: Address): boolean {
    const key = hostKeyOf(reporter);
    const before = this.#reports.get(key)?.seen;
    this.#reports.delete(key);
    this.#reports.set(key, { seen, at: this.#clock.now() });
    for (const oldest of this.#reports.keys()) if (this.#reports.size > MAX_REPORTERS) this.#reports.delete(oldest);
    return before === undefined || formatAddress(before) !== formatAddress(seen);
  }

  /** Forgets every report: the network has changed. */
  clear(): void {
    this.#reports.clear();
  }

  #seen(): Address[] {
    const since = this.#clock.now() - REPORT_TTL_MS;
    return [...this.#reports.values()].filter(({ at }) => at > since).map(({ seen }) => seen);
  }

  get reporters(): number {
    return this.#seen().length;
  }

  /** The host that most reporters name, where at least `needed` do. */
  host(needed: number): string | null {
    return mostCommon(
      this.#seen().map((seen) => seen.host),
      needed,
    );
  }

  /** The address that most reporters name, port included, where at least `needed` do. */
  address(needed: number): Address | null {
    const seen = this.#seen();
    const key = mostCommon(seen.map(formatAddress), needed);
    return seen.find((address) => formatAddress(address) === key) ?? null;
  }
}

function mostCommon(names: readonly string[], needed: number): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  let best: string | null = null;
  let most = Math.max(0, needed - 1);
  for (const [name, count] of counts) {
    if (count > most) {
      most = count;
      best = name;
    }
  }
  return best;
}
