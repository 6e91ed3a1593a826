/** What all wide tunnel connections together may keep for readers that are behind, in both directions. */
import { Quota, type QuotaHolder, type QuotaLimits, type QuotaShare } from '../../../foundation/quota.ts';
import { FIRST_WINDOW_BYTES } from './wide-stream.ts';

/** First windows with one other node, bytes; windows may grow by as much again. */
export const MAX_WINDOWS_PER_NODE_BYTES: number = 32 * 1024 * 1024;
/** The same with the strangers on one IPv4 address or IPv6 /64, or in one IPv4 /24 or IPv6 /48, bytes. */
export const MAX_WINDOWS_PER_SOURCE_BYTES: number = 16 * 1024 * 1024;
/** The same with all nodes, bytes. */
export const MAX_WINDOWS_BYTES: number = 128 * 1024 * 1024;
/** Of these, the ones that are only for callers let in by name and for agents that are called. */
export const RESERVED_WINDOWS_BYTES: number = 96 * 1024 * 1024;
/** What a new connection may keep in both directions, bytes. */
export const NEW_BYTES: number = 2 * FIRST_WINDOW_BYTES;

const LIMITS: QuotaLimits = {
  perNode: MAX_WINDOWS_PER_NODE_BYTES,
  perSource: MAX_WINDOWS_PER_SOURCE_BYTES,
  perNetwork: MAX_WINDOWS_PER_SOURCE_BYTES,
  total: MAX_WINDOWS_BYTES,
  reserved: RESERVED_WINDOWS_BYTES,
};

/** Growing windows never take the room of new connections, so each has a quota of its own. */
export class WindowBudget {
  readonly begun = new Quota(LIMITS);
  readonly grown = new Quota(LIMITS);

  /** Whether there is room for a new connection. */
  hasRoom(holder: QuotaHolder): boolean {
    return this.begun.fullLevel(holder, NEW_BYTES) === null;
  }
}

/** The part of the budget that one connection has taken. Nothing evicts it: a window that was granted cannot be taken back. */
export class WindowShare {
  readonly #budget: WindowBudget;
  readonly #holder: QuotaHolder;
  #begun: QuotaShare | null = null;
  #grown: QuotaShare | null = null;

  constructor(budget: WindowBudget, holder: QuotaHolder) {
    this.#budget = budget;
    this.#holder = holder;
  }

  /** Takes what a new connection needs; false if there is no room. */
  begin(): boolean {
    this.#begun = this.#budget.begun.take(this.#holder, { amount: NEW_BYTES });
    return this.#begun !== null;
  }

  /** Takes more; false if there is no room. */
  grow(bytes: number): boolean {
    if (this.#grown !== null) return this.#grown.grow(bytes);
    this.#grown = this.#budget.grown.take(this.#holder, { amount: bytes });
    return this.#grown !== null;
  }

  /** Gives all of it back. */
  giveAll(): void {
    this.#begun?.release();
    this.#grown?.release();
  }
}
