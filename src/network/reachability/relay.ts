/** The relay of a helper: its sessions, what each source may take, and their end. */
import { randomBytes } from 'node:crypto';
import { toHex } from '../../foundation/bytes.ts';
import { type Clock, DAY_MS } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { networkOf, subscriberOf } from '../../foundation/ip.ts';
import type { Log } from '../../foundation/log.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { DEFAULT_RELAY_LIMITS, RelayBudget, type RelayLimits } from './relay-budget.ts';
import { RELAY_TOKEN_BYTES, type RelayCounters, RelaySession, type RelaySocket } from './relay-session.ts';

/** How often budgets are filled up, milliseconds. */
const REFILL_MS = 20;
/** How often sessions are looked at, milliseconds. */
const LOOK_MS = 1_000;
/** Nothing handed over for so long ends a session, milliseconds: both ends show every few seconds that they live. */
export const RELAY_IDLE_MS = 30_000;
/** Both ends have to come within this time, milliseconds. */
export const RELAY_JOIN_MS = 15_000;

/** What one network (an IPv4 /24 or IPv6 /48) may have, in shares of one source. */
export const SOURCES_PER_NETWORK = 2;

interface Kept {
  readonly session: RelaySession;
  /** Names of its source and its network, and what these may use. */
  readonly uses: readonly (readonly [name: string, use: Use])[];
  readonly share: QuotaShare;
  /** When something was last handed over; when it was made where nothing was. */
  usedAt: number;
}

/** What a source or a network uses. */
interface Use {
  readonly budget: RelayBudget;
  sessions: number;
}

/** A session for two nodes. */
export interface RelayOffer {
  /** The port that the caller dials. */
  readonly callerPort: number;
  /** The port that the called node writes its token to. */
  readonly calledPort: number;
  readonly token: Uint8Array;
  /** Gives it back where the called node does not take part. */
  readonly cancel: () => void;
}

export interface RelayUse {
  readonly sessions: number;
  readonly datagrams: number;
  readonly bytes: number;
  readonly dropped: number;
}

interface RelayDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly createSocket: () => RelaySocket;
}

export class Relay {
  readonly #limits: RelayLimits;
  readonly #deps: RelayDependencies;
  readonly #all: RelayBudget;
  readonly #quota: Quota;
  readonly #uses = new Map<string, Use>();
  readonly #sessions = new Set<Kept>();
  readonly #counters: RelayCounters = { datagrams: 0, bytes: 0, dropped: 0 };
  #repeating: readonly RepeatingTask[] = [];
  #refilledAt = 0;
  #day: number;

  constructor(limits: Partial<RelayLimits>, dependencies: RelayDependencies) {
    this.#limits = { ...DEFAULT_RELAY_LIMITS, ...limits };
    this.#deps = dependencies;
    this.#all = new RelayBudget(this.#limits.bytesPerSecond, this.#limits.bytesPerDay);
    this.#quota = new Quota({
      perSource: this.#limits.sessionsPerSource,
      perNetwork: SOURCES_PER_NETWORK * this.#limits.sessionsPerSource,
      total: this.#limits.sessions,
    });
    this.#day = this.#today();
  }

  /** What it does now, and has done since it was made. */
  get use(): RelayUse {
    return { sessions: this.#sessions.size, ...this.#counters };
  }

  /**
   * Opens a session; null where the limits leave no room.
   * @param callerHost where the caller is seen: it is charged, and its handshake has to come from there
   * @param calledHost where the called node is seen: its token has to come from there
   */
  open(callerHost: string, calledHost: string): RelayOffer | null {
    this.#renewDaily();
    const source = subscriberOf(callerHost);
    const network = networkOf(callerHost) ?? source;
    const uses = [
      [source, this.#useOf(source, 1)],
      [`network ${network}`, this.#useOf(`network ${network}`, SOURCES_PER_NETWORK)],
    ] as const;
    if (this.#all.isUsedUp || uses.some(([, { budget }]) => budget.isUsedUp)) return null;
    const onEvict = (): void => {
      if (kept !== null) this.#end(kept);
    };
    let kept: Kept | null = null;
    const share = this.#quota.take({ node: source, source: callerHost, named: false }, { onEvict });
    if (share === null) return null;
    const token = new Uint8Array(randomBytes(RELAY_TOKEN_BYTES));
    const budgets = [...uses.map(([, { budget }]) => budget), this.#all];
    const ends = { callerHost, calledHost, token };
    const session = new RelaySession(ends, this.#deps.createSocket, budgets, this.#counters);
    const begun: Kept = { session, uses, share, usedAt: this.#deps.clock.now() };
    kept = begun;
    for (const [name, use] of uses) {
      use.sessions++;
      this.#uses.set(name, use);
    }
    this.#sessions.add(begun);
    this.#start();
    this.#deps.log.debug({ session: toHex(token.subarray(0, 4)), source }, 'a relayed session begins');
    const { caller, called } = session.ports;
    return { callerPort: caller, calledPort: called, token, cancel: () => this.#end(begun) };
  }

  async stop(): Promise<void> {
    const sessions = [...this.#sessions].map(({ session }) => session);
    for (const kept of this.#sessions) this.#forget(kept);
    this.#rest();
    await Promise.all(sessions.map((session) => session.close()));
  }

  /** @param shares of one source that it may use */
  #useOf(name: string, shares: number): Use {
    const { bytesPerSecondPerSource, bytesPerDayPerSource } = this.#limits;
    return (
      this.#uses.get(name) ?? {
        budget: new RelayBudget(shares * bytesPerSecondPerSource, shares * bytesPerDayPerSource),
        sessions: 0,
      }
    );
  }

  /** Timers run only while there is something to relay. */
  #start(): void {
    if (this.#repeating.length > 0) return;
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'the relay could not be looked at');
    this.#refilledAt = clock.now();
    this.#repeating = [
      every(clock, { periodMs: REFILL_MS, onError }, () => this.#refill()),
      every(clock, { periodMs: LOOK_MS, onError }, () => this.#look()),
    ];
  }

  #rest(): void {
    for (const repeating of this.#repeating) repeating.stop();
    this.#repeating = [];
  }

  #refill(): void {
    const now = this.#deps.clock.now();
    const ms = Math.max(0, now - this.#refilledAt);
    this.#refilledAt = now;
    this.#all.refill(ms);
    for (const { budget } of this.#uses.values()) budget.refill(ms);
  }

  #look(): void {
    const now = this.#deps.clock.now();
    this.#renewDaily();
    for (const kept of this.#sessions) {
      if (kept.session.takeUse()) kept.usedAt = now;
      const idleTimeout = kept.session.isWhole ? RELAY_IDLE_MS : RELAY_JOIN_MS;
      if (now - kept.usedAt > idleTimeout || this.#isUsedUp(kept)) this.#end(kept);
    }
  }

  #today(): number {
    return Math.floor(this.#deps.clock.now() / DAY_MS);
  }

  #renewDaily(): void {
    const today = this.#today();
    if (today === this.#day) return;
    this.#day = today;
    this.#all.renew();
    for (const [name, { budget, sessions }] of this.#uses)
      if (sessions === 0) this.#uses.delete(name);
      else budget.renew();
  }

  #isUsedUp({ uses }: Kept): boolean {
    return this.#all.isUsedUp || uses.some(([, { budget }]) => budget.isUsedUp);
  }

  #end(kept: Kept): void {
    if (!this.#forget(kept)) return;
    detach(kept.session.close());
    if (this.#sessions.size === 0) this.#rest();
  }

  /** Its source and network are remembered until the next day if they have used anything. */
  #forget(kept: Kept): boolean {
    if (!this.#sessions.delete(kept)) return false;
    kept.share.release();
    for (const [name, use] of kept.uses) {
      use.sessions--;
      if (use.sessions === 0 && use.budget.isWhole) this.#uses.delete(name);
    }
    return true;
  }
}
