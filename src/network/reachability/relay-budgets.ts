/**
 * Bytes that this node forwards for others, per second and per day: for each source and network, and in total. Relayed
 * sessions and lent ports share them.
 */
import { type Clock, DAY_MS } from '../../foundation/clock.ts';
import { type QuotaHolder, sourceGroupOf } from '../../foundation/quota.ts';

/** Relayed bytes per second. */
export const RELAY_BYTES_PER_S: number = 16 * 1024 * 1024;
/** Relayed bytes per second of one source. */
export const RELAY_BYTES_PER_S_PER_SOURCE: number = 8 * 1024 * 1024;
/** Relayed bytes per day. */
export const RELAY_BYTES_PER_DAY: number = 64 * 1024 ** 3;
/** Relayed bytes per day of one source. */
export const RELAY_BYTES_PER_DAY_PER_SOURCE: number = 8 * 1024 ** 3;
/** Part of all relayed bytes, and of all sessions, that only known nodes use. */
export const RESERVED_RELAY_PART = 0.25;
/** Limit of one network (an IPv4 /24 or IPv6 /48), as a multiple of the limit of one source. */
export const SOURCES_PER_NETWORK = 2;
/** Sources and networks whose usage of the day is stored. The oldest without a session is evicted first. */
export const MAX_STORED_BUDGETS = 16_384;
/** Maximum time that one refill credits, milliseconds, so that a pause does not allow a burst. */
const MAX_REFILL_MS = 250;

export interface RelayByteLimits {
  /** Bytes per second, for both directions of all sessions. */
  readonly bytesPerSecond: number;
  readonly bytesPerSecondPerSource: number;
  readonly bytesPerDay: number;
  readonly bytesPerDayPerSource: number;
}

class Budget {
  readonly #perMs: number;
  /** Bytes that may be forwarded now, as of the last refill. */
  #available: number;
  #refilledAt: number;
  /** Bytes that may be forwarded today. */
  #availableToday: number;
  readonly #perDay: number;
  /** Accounts that use this budget. */
  users = 0;

  constructor(bytesPerSecond: number, bytesPerDay: number, now: number) {
    this.#perMs = bytesPerSecond / 1000;
    this.#available = this.#perMs * MAX_REFILL_MS;
    this.#refilledAt = now;
    this.#availableToday = bytesPerDay;
    this.#perDay = bytesPerDay;
  }

  /** True if the bytes of the day are used up. */
  get isUsedUp(): boolean {
    return this.#availableToday <= 0;
  }

  /** True if no bytes of the day are used. */
  get isUnused(): boolean {
    return this.#availableToday === this.#perDay;
  }

  has(bytes: number, now: number): boolean {
    const ms = Math.min(Math.max(0, now - this.#refilledAt), MAX_REFILL_MS);
    this.#refilledAt = now;
    this.#available = Math.min(this.#available + this.#perMs * ms, this.#perMs * MAX_REFILL_MS);
    return this.#available >= bytes && this.#availableToday >= bytes;
  }

  spend(bytes: number): void {
    this.#available -= bytes;
    this.#availableToday -= bytes;
  }

  /** Starts a new day. */
  startDay(): void {
    this.#availableToday = this.#perDay;
  }
}

/** The budgets of one session. */
export interface RelayAccount {
  /** True if a budget of the day is used up. */
  readonly isUsedUp: boolean;
  /** Spends bytes of all budgets. Returns false, and spends none, if a budget has fewer. */
  spend(bytes: number): boolean;
  /** Call once, when the session ends. */
  close(): void;
}

export class RelayBudgets {
  readonly #limits: RelayByteLimits;
  readonly #clock: Clock;
  readonly #all: Budget;
  readonly #strangers: Budget;
  readonly #budgets = new Map<string, Budget>();
  #day: number;

  constructor(limits: RelayByteLimits, { clock }: { readonly clock: Clock }) {
    this.#limits = limits;
    this.#clock = clock;
    const budget = (part: number): Budget =>
      new Budget(part * limits.bytesPerSecond, part * limits.bytesPerDay, clock.monotonic());
    this.#all = budget(1);
    this.#strangers = budget(1 - RESERVED_RELAY_PART);
    this.#day = this.#today();
  }

  /**
   * Opens an account for a session of a source; null if a budget of the day is used up. Known nodes have no limit per
   * source and network, and they alone use the reserved part.
   */
  open({
    source: host,
    named: isKnown,
  }: Pick<QuotaHolder, 'named'> & { readonly source: string }): RelayAccount | null {
    this.#startDayIfNew();
    const group = sourceGroupOf(host);
    const source = `source ${group.source}`;
    const network = `network ${group.network}`;
    const named: readonly (readonly [string, Budget])[] = isKnown
      ? []
      : [
          [source, this.#budget(source, 1)],
          [network, this.#budget(network, SOURCES_PER_NETWORK)],
        ];
    const budgets = [...named.map(([, budget]) => budget), ...(isKnown ? [] : [this.#strangers]), this.#all];
    if (budgets.some(({ isUsedUp }) => isUsedUp)) return null;
    for (const [name, budget] of named) {
      budget.users++;
      this.#budgets.set(name, budget);
    }
    const clock = this.#clock;
    const startDayIfNew = (): void => this.#startDayIfNew();
    return {
      get isUsedUp() {
        startDayIfNew();
        return budgets.some((budget) => budget.isUsedUp);
      },
      spend: (bytes) => {
        startDayIfNew();
        const now = clock.monotonic();
        for (const budget of budgets) if (!budget.has(bytes, now)) return false;
        for (const budget of budgets) budget.spend(bytes);
        return true;
      },
      close: () => {
        for (const [name, budget] of named) this.#release(name, budget);
      },
    };
  }

  /** @param shares multiple of the limits of one source */
  #budget(name: string, shares: number): Budget {
    const { bytesPerSecondPerSource, bytesPerDayPerSource } = this.#limits;
    const [perSecond, perDay] = [shares * bytesPerSecondPerSource, shares * bytesPerDayPerSource];
    return this.#budgets.get(name) ?? new Budget(perSecond, perDay, this.#clock.monotonic());
  }

  /** The usage of a source or network is kept until the next day, unless it is zero. */
  #release(name: string, budget: Budget): void {
    budget.users--;
    if (budget.users > 0) return;
    this.#budgets.delete(name);
    if (budget.isUnused) return;
    this.#budgets.set(name, budget);
    for (const [oldest, { users }] of this.#budgets) {
      if (this.#budgets.size <= MAX_STORED_BUDGETS) return;
      if (users === 0) this.#budgets.delete(oldest);
    }
  }

  #today(): number {
    return Math.floor(this.#clock.now() / DAY_MS);
  }

  #startDayIfNew(): void {
    const today = this.#today();
    if (today === this.#day) return;
    this.#day = today;
    this.#all.startDay();
    this.#strangers.startDay();
    for (const [name, budget] of this.#budgets)
      if (budget.users === 0) this.#budgets.delete(name);
      else budget.startDay();
  }
}
