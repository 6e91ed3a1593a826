/**
 * A share of a quota with a variable amount. It is in the quota only while the amount is above 0, so that no empty
 * share is evicted.
 */
import type { Quota, QuotaHolder, QuotaShare } from './quota.ts';

export class ResizableShare {
  readonly #quota: Quota;
  readonly #holder: QuotaHolder;
  readonly #onEvict: () => void;
  #share: QuotaShare | null = null;

  /** @param onEvict called if the share is evicted; its amount is 0 then */
  constructor(quota: Quota, holder: QuotaHolder, onEvict: () => void) {
    this.#quota = quota;
    this.#holder = holder;
    this.#onEvict = () => {
      this.#share = null;
      onEvict();
    };
  }

  /** Units in the share. */
  get amount(): number {
    return this.#share?.amount ?? 0;
  }

  /** Sets the amount. Returns false, and changes nothing, if there is no room for more. */
  set(amount: number): boolean {
    const more = amount - this.amount;
    if (more === 0) return true;
    if (more > 0) return this.#add(more);
    if (amount > 0) this.#share?.shrink(-more);
    else this.#release();
    return true;
  }

  /** Marks the share as used, so that idle shares are evicted before it. */
  touch(): void {
    this.#share?.touch();
  }

  #add(amount: number): boolean {
    if (this.#share !== null) return this.#share.grow(amount);
    this.#share = this.#quota.take(this.#holder, { amount, onEvict: this.#onEvict });
    return this.#share !== null;
  }

  #release(): void {
    this.#share?.release();
    this.#share = null;
  }
}
