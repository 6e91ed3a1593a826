/**
 * How much a helper relays: bytes a second and a day, for one source and in all. It is looked at for each datagram, so
 * the figures are plain numbers that a timer fills up.
 */

/** What a helper gives away; a setting each. */
export interface RelayLimits {
  /** Sessions at one time. */
  readonly sessions: number;
  /** The same for one source. */
  readonly sessionsPerSource: number;
  /** Bytes a second, both directions and all sessions together. */
  readonly bytesPerSecond: number;
  /** The same for one source. */
  readonly bytesPerSecondPerSource: number;
  /** Bytes a day. */
  readonly bytesPerDay: number;
  /** The same for one source. */
  readonly bytesPerDayPerSource: number;
}

/** Relayed sessions at one time. */
export const MAX_RELAYED = 64;
/** The same for one source. */
export const MAX_RELAYED_PER_SOURCE = 8;
/** Bytes a second that are relayed in all. */
export const RELAY_BYTES_PER_S: number = 16 * 1024 * 1024;
/** The same for one source. */
export const RELAY_BYTES_PER_S_PER_SOURCE: number = 8 * 1024 * 1024;
/** Bytes a day that are relayed in all. */
export const RELAY_BYTES_PER_DAY: number = 64 * 1024 ** 3;
/** The same for one source. */
export const RELAY_BYTES_PER_DAY_PER_SOURCE: number = 8 * 1024 ** 3;

export const DEFAULT_RELAY_LIMITS: RelayLimits = {
  sessions: MAX_RELAYED,
  sessionsPerSource: MAX_RELAYED_PER_SOURCE,
  bytesPerSecond: RELAY_BYTES_PER_S,
  bytesPerSecondPerSource: RELAY_BYTES_PER_S_PER_SOURCE,
  bytesPerDay: RELAY_BYTES_PER_DAY,
  bytesPerDayPerSource: RELAY_BYTES_PER_DAY_PER_SOURCE,
};

/** What of all is left for one source: a part of it, so that one never has everything. */
const SOURCES_FOR_SESSIONS: number = MAX_RELAYED / MAX_RELAYED_PER_SOURCE;
const SOURCES_FOR_RATE: number = RELAY_BYTES_PER_S / RELAY_BYTES_PER_S_PER_SOURCE;
const SOURCES_FOR_DAY: number = RELAY_BYTES_PER_DAY / RELAY_BYTES_PER_DAY_PER_SOURCE;

/** What the owner of a node gives away to others. */
interface RelaySettings {
  readonly help_others: boolean;
  readonly relay_sessions: number;
  readonly relay_bytes_per_second: number;
  readonly relay_bytes_per_day: number;
}

/** The limits that settings stand for: those of one source are the same part of the whole as by default. */
export function relayLimits(settings: RelaySettings): RelayLimits {
  const { help_others, relay_sessions, relay_bytes_per_second, relay_bytes_per_day } = settings;
  return {
    sessions: help_others ? relay_sessions : 0,
    sessionsPerSource: Math.ceil(relay_sessions / SOURCES_FOR_SESSIONS),
    bytesPerSecond: relay_bytes_per_second,
    bytesPerSecondPerSource: relay_bytes_per_second / SOURCES_FOR_RATE,
    bytesPerDay: relay_bytes_per_day,
    bytesPerDayPerSource: relay_bytes_per_day / SOURCES_FOR_DAY,
  };
}

/** What is given back to a budget at a time is at most that of so many milliseconds: a pause is no credit for a burst. */
const MAX_CREDIT_MS = 250;

export class RelayBudget {
  readonly #perMs: number;
  /** Bytes that may pass until the next refill. */
  #now: number;
  /** Bytes that may pass today. */
  #today: number;
  readonly #perDay: number;

  constructor(bytesPerSecond: number, bytesPerDay: number) {
    this.#perMs = bytesPerSecond / 1000;
    this.#now = this.#perMs * MAX_CREDIT_MS;
    this.#today = bytesPerDay;
    this.#perDay = bytesPerDay;
  }

  /** True where nothing more may pass today. */
  get isUsedUp(): boolean {
    return this.#today <= 0;
  }

  /** True where nothing has passed today. */
  get isWhole(): boolean {
    return this.#today === this.#perDay;
  }

  has(bytes: number): boolean {
    return this.#now >= bytes && this.#today >= bytes;
  }

  spend(bytes: number): void {
    this.#now -= bytes;
    this.#today -= bytes;
  }

  refill(ms: number): void {
    this.#now = Math.min(this.#now + this.#perMs * ms, this.#perMs * MAX_CREDIT_MS);
  }

  /** A new day has begun. */
  renew(): void {
    this.#today = this.#perDay;
  }
}
