/**
 * Counts what each source holds of something that outlives the process, such as rows of a database. It has the levels of
 * `Quota` from the source up, and finds the largest holder by the same rule. The rows themselves are not held here: their
 * owner removes them.
 */
import { sourceGroupOf } from './quota.ts';
import { Tally } from './tally.ts';

export class SourceTally {
  readonly #networks = new Map<string, Tally>();
  #total = 0;

  /** How much all sources hold. */
  get total(): number {
    return this.#total;
  }

  /** How much a source holds: an IPv4 address, an IPv6 /64, or another name if its address is unknown. */
  of(source: string): number {
    return this.#networkOf(source)?.of(source) ?? 0;
  }

  /** How much the network of a source holds: its IPv4 /24 or IPv6 /48. */
  ofNetwork(source: string): number {
    return this.#networkOf(source)?.total ?? 0;
  }

  /** Adds to a source or, below 0, takes away. */
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
   * The source that makes room for a newcomer: the largest of the network that holds most. It is the newcomer itself
   * unless another holds more than the newcomer would have with `amount` more.
   */
  largest(newcomer: string, amount: number): string {
    const { network } = sourceGroupOf(newcomer);
    const networks = this.#networks.entries().map(([name, { total }]) => [name, total] as const);
    const largest = largerThan(networks, network, this.ofNetwork(newcomer) + amount);
    const sources = this.#networks.get(largest) ?? [];
    // In another network, every source may be the one.
    if (largest !== network) return largerThan(sources, '', 0);
    return largerThan(sources, newcomer, this.of(newcomer) + amount);
  }

  #networkOf(source: string): Tally | undefined {
    return this.#networks.get(sourceGroupOf(source).network);
  }
}

/** The name of whoever holds most, if that is more than `own` would; `own` otherwise. */
function largerThan(entries: Iterable<readonly [string, number]>, own: string, ownAmount: number): string {
  let largest = own;
  let most = ownAmount;
  for (const [name, amount] of entries) if (name !== own && amount > most) [largest, most] = [name, amount];
  return largest;
}
