/** A share of a quota whose amount rises and falls. It has a place in the quota only while it holds something, so that no holder is evicted in vain. */
import type { Quota, QuotaHolder, QuotaShare } from './quota.ts';

export class ResizableShare {
  readonly #quota: Quota;
  readonly #holder: QuotaHolder;
  readonly #onEvict: () => void;
  #share: QuotaShare | null = null;

  /** @param onEvict called if it has to make room; it holds nothing then */
  constructor(quota: Quota, holder: QuotaHolder, onEvict: () => void) {
    this.#quota = quota;
    this.#holder = holder;
    this.#onEvict = () => {
      this.#share = null;
      onEvict();
    };
  }

  /** Units that it holds. */
  get amount(): number {
    return this.#share?.amount ?? 0;
  }

  /** Sets how much it holds; false, and nothing changed, if there is no room for more. */
  set(amount: number): boolean {
    const more = amount - this.amount;
    if (more === 0) return true;
    if (more > 0) return this.#add(more);
    if (amount > 0) this.#share?.shrink(-more);
    else this.#release();
    return true;
  }

  /** It was used: others are evicted before it. */
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
