/** The relay of a helper: its sessions, what each source may take, and their end. */
import { randomBytes } from 'node:crypto';
import type { Address } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, DAY_MS } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { networkOf, subscriberOf } from '../../foundation/ip.ts';
import type { Log } from '../../foundation/log.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';

/*
 * Two ports of a helper between which datagrams are handed over unread. Each port serves one address: that of the first
 * datagram which shows that it comes from the right node. The bytes are sealed for the nodes at the ends.
 */

/** Bytes of the token by which the called node shows that a port is for it. */
export const RELAY_TOKEN_BYTES = 16;
/** The least bytes of the datagram that begins a QUIC handshake (RFC 9000, 14.1) … */
const INITIAL_BYTES = 1200;
/** … and the bit that says that it has a long header. */
const LONG_HEADER = 0x80;
/** Largest datagram that is handed over, bytes. */
const MAX_RELAYED_BYTES = 1500;

/** A UDP socket, as the engine of the DHT has them. */
export interface RelaySocket {
  on(event: 'message', listener: (datagram: Uint8Array, from: Address) => void): unknown;
  bind(port: number, host: string): void;
  address(): Address | null;
  trySend(datagram: Uint8Array, port: number, host: string): void;
  close(): Promise<void>;
}

export interface RelayEnds {
  /** Where the helper sees the calling node: its handshake has to come from this host. */
  readonly callerHost: string;
  /** Where the helper sees the called node: its token has to come from this host, or from the same IPv6 /64. */
  readonly calledHost: string;
  /** What the called node sends to show that it is the one. */
  readonly token: Uint8Array;
}

/** Datagrams and bytes that were handed over, and datagrams that were not: too many, or from somebody else. */
export interface RelayCounters {
  datagrams: number;
  bytes: number;
  dropped: number;
}

/** One of the two ports. */
class End {
  readonly socket: RelaySocket;
  readonly port: number;
  host = '';
  remotePort = 0;

  /** @param expected the host whose address family it listens on */
  constructor(socket: RelaySocket, expected: string) {
    this.socket = socket;
    socket.bind(0, expected.includes(':') ? '::' : '0.0.0.0');
    this.port = socket.address()?.port ?? 0;
  }

  learn({ host, port }: Address): void {
    this.host = host;
    this.remotePort = port;
  }

  is(from: Address): boolean {
    return from.port === this.remotePort && from.host === this.host;
  }
}

export class RelaySession {
  readonly #ends: RelayEnds;
  readonly #budgets: readonly RelayBudget[];
  readonly #counters: RelayCounters;
  readonly #caller: End;
  readonly #called: End;
  /** True once something was handed over since the last look. */
  #wasUsed = false;

  constructor(
    ends: RelayEnds,
    createSocket: () => RelaySocket,
    budgets: readonly RelayBudget[],
    counters: RelayCounters,
  ) {
    this.#ends = ends;
    this.#budgets = budgets;
    this.#counters = counters;
    this.#caller = new End(createSocket(), ends.callerHost);
    this.#called = new End(createSocket(), ends.calledHost);
    this.#caller.socket.on('message', (datagram, from) => {
      if (this.#isCaller(datagram, from)) this.#hand(datagram, this.#called);
    });
    this.#called.socket.on('message', (datagram, from) => {
      if (this.#isCalled(datagram, from)) this.#hand(datagram, this.#caller);
    });
  }

  /** Which port each of them has to use. */
  get ports(): { readonly caller: number; readonly called: number } {
    return { caller: this.#caller.port, called: this.#called.port };
  }

  /** True where both have come. */
  get isWhole(): boolean {
    return this.#caller.remotePort !== 0 && this.#called.remotePort !== 0;
  }

  /** Whether anything was handed over since the last call. */
  takeUse(): boolean {
    const wasUsed = this.#wasUsed;
    this.#wasUsed = false;
    return wasUsed;
  }

  async close(): Promise<void> {
    await Promise.all([this.#caller.socket.close(), this.#called.socket.close()]);
  }

  #isCaller(datagram: Uint8Array, from: Address): boolean {
    if (this.#caller.is(from)) return true;
    const isFirst = this.#caller.remotePort === 0 && from.host === this.#ends.callerHost;
    if (isFirst && datagram.length >= INITIAL_BYTES && ((datagram[0] ?? 0) & LONG_HEADER) !== 0) {
      this.#caller.learn(from);
      return true;
    }
    this.#counters.dropped++;
    return false;
  }

  /**
   * The token is repeated if its echo was lost, and is never handed over. The called node knows the token and could forge
   * the source of a datagram, so only its own host is accepted: otherwise the relay would send the caller's packets to a
   * victim.
   */
  #isCalled(datagram: Uint8Array, from: Address): boolean {
    const isKnown = this.#called.is(from);
    const mayBeFirst = this.#called.remotePort === 0 && subscriberOf(from.host) === subscriberOf(this.#ends.calledHost);
    if (datagram.length === RELAY_TOKEN_BYTES && (isKnown || mayBeFirst)) {
      if (!equalBytes(datagram, this.#ends.token)) return isKnown;
      this.#called.learn(from);
      this.#called.socket.trySend(this.#ends.token, from.port, from.host);
      return false;
    }
    if (!isKnown) this.#counters.dropped++;
    return isKnown;
  }

  #hand(datagram: Uint8Array, to: End): void {
    const { length } = datagram;
    if (to.remotePort === 0 || length > MAX_RELAYED_BYTES || !this.#pays(length)) {
      this.#counters.dropped++;
      return;
    }
    this.#wasUsed = true;
    this.#counters.datagrams++;
    this.#counters.bytes += length;
    to.socket.trySend(datagram, to.remotePort, to.host);
  }

  #pays(bytes: number): boolean {
    for (const budget of this.#budgets) if (!budget.has(bytes)) return false;
    for (const budget of this.#budgets) budget.spend(bytes);
    return true;
  }
}

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
