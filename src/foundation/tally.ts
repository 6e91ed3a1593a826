import { sourceGroupOf } from './quota.ts';

/** Counts by key, and stores only keys with a count above 0. */
export class Tally<K = string> {
  readonly #counts = new Map<K, number>();
  #total = 0;

  /** The count of a key. */
  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  /** The sum of all counts. */
  get total(): number {
    return this.#total;
  }

  /** Adds to a key, or subtracts if `change` is negative. The count never falls below 0. */
  add(key: K, change = 1): void {
    const before = this.of(key);
    const count = Math.max(0, before + change);
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
    this.#total += count - before;
  }

  clear(): void {
    this.#counts.clear();
    this.#total = 0;
  }

  /** The keys with a count above 0, with their counts. */
  [Symbol.iterator](): MapIterator<[K, number]> {
    return this.#counts.entries();
  }
}

// Counts resources per source that outlive the process, such as database rows. It uses the levels of `Quota` from the
// source up and selects the largest holder by the same rule. The caller removes the rows.

export class SourceTally {
  readonly #networks = new Map<string, Tally>();
  #total = 0;

  /** Total of all sources. */
  get total(): number {
    return this.#total;
  }

  /** Amount of a source: an IPv4 address, an IPv6 /64, or another name if the address is unknown. */
  of(source: string): number {
    return this.#networkOf(source)?.of(source) ?? 0;
  }

  /** Amount of the network of a source: its IPv4 /24 or IPv6 /48. */
  ofNetwork(source: string): number {
    return this.#networkOf(source)?.total ?? 0;
  }

  /** Adds to a source, or subtracts if `change` is negative. */
  add(source: string, change = 1): void {
    const { network } = sourceGroupOf(source);
    const tally = this.#networks.get(network) ?? new Tally();
    const before = tally.total;
    tally.add(source, change);
    this.#total += tally.total - before;
    if (tally.total > 0) this.#networks.set(network, tally);
    else this.#networks.delete(network);
  }

  /**
   * The source to evict for a new entry: the largest source of the largest network. It is the source of the new entry
   * itself, unless another holds more than it would have after adding `amount`.
   */
  largest(newSource: string, amount: number): string {
    const { network } = sourceGroupOf(newSource);
    const networks = this.#networks.entries().map(([name, { total }]) => [name, total] as const);
    const largest = largerThan(networks, network, this.ofNetwork(newSource) + amount);
    const sources = this.#networks.get(largest) ?? [];
    // In another network, any source qualifies.
    if (largest !== network) return largerThan(sources, '', 0);
    return largerThan(sources, newSource, this.of(newSource) + amount);
  }

  #networkOf(source: string): Tally | undefined {
    return this.#networks.get(sourceGroupOf(source).network);
  }
}

/** The name of the largest entry if it exceeds `own`; otherwise `own`. */
function largerThan(entries: Iterable<readonly [string, number]>, own: string, ownAmount: number): string {
  let largest = own;
  let most = ownAmount;
  for (const [name, amount] of entries) if (name !== own && amount > most) [largest, most] = [name, amount];
  return largest;
}

// Chooses the rows to evict where each row has a key (such as a sender) below its source.

/** The holder of some rows. */
export interface RowHolder {
  readonly network: string;
  readonly source: string;
  readonly key: string;
}

/** A level without room. */
export type FullLevel = 'total' | 'network' | 'source';

/** From the most expensive identity to the cheapest. */
const HOLDER_LEVELS = ['network', 'source', 'key'] as const;

/**
 * The holder that loses a row to a newcomer, by the rule of `Quota`; null if no holder has more than the newcomer would.
 * @param newcomer null for a named holder, which evicts any stranger
 * @param full the level without room: only holders that share it with the newcomer are compared; `total` compares all
 */
export function holderToEvict<H extends RowHolder & { readonly count: number }>(
  holders: readonly H[],
  newcomer: RowHolder | null,
  full: FullLevel,
): H | null {
  const first = full === 'total' ? 0 : HOLDER_LEVELS.indexOf(full) + 1;
  let among = holders.filter((one) => HOLDER_LEVELS.slice(0, first).every((level) => one[level] === newcomer?.[level]));
  let own = newcomer;
  for (const level of HOLDER_LEVELS.slice(first)) {
    const counts = new Tally();
    for (const one of among) counts.add(one[level], one.count);
    const mine = own?.[level] ?? '';
    const largest = largerThan(counts, mine, own === null ? 0 : counts.of(mine) + 1);
    if (largest !== mine) own = null;
    among = among.filter((one) => one[level] === largest);
  }
  return own === null ? (among[0] ?? null) : null;
}
