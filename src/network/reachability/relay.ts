/** The relay of a helper: sessions, quotas and expiry. */
import { randomBytes } from 'node:crypto';
import type { Address } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { detach } from '../../foundation/detached.ts';
import { subscriberOf } from '../../foundation/ip.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaShare } from '../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { bindAnyPort, QUIC_INITIAL_BYTES } from '../transport/udp-socket.ts';
import {
  RELAY_BYTES_PER_DAY,
  RELAY_BYTES_PER_DAY_PER_SOURCE,
  RELAY_BYTES_PER_S,
  RELAY_BYTES_PER_S_PER_SOURCE,
  RESERVED_RELAY_PART,
  type RelayAccount,
  RelayBudgets,
  type RelayByteLimits,
  SOURCES_PER_NETWORK,
} from './relay-budgets.ts';

/*
 * A session forwards datagrams between two ports without reading them. Each port serves one address: the source of the
 * first datagram that proves to be from the expected node. The payload is encrypted end to end.
 */

/** Size of the token that identifies the called node, bytes. */
export const RELAY_TOKEN_BYTES = 16;
/** The bit that marks a long header. */
const LONG_HEADER = 0x80;
/** Largest datagram to forward, bytes. */
const MAX_RELAYED_BYTES = 1500;

/** A UDP socket, with the interface of the DHT engine's sockets. */
export interface RelaySocket {
  on(event: 'message', listener: (datagram: Uint8Array, from: Address) => void): unknown;
  bind(port: number, host: string): void;
  address(): Address | null;
  trySend(datagram: Uint8Array, port: number, host: string): void;
  close(): Promise<void>;
}

export interface RelayPeers {
  /** The caller's host as the helper sees it. Its handshake must be sent from this host. */
  readonly callerHost: string;
  /** The called node's host as the helper sees it. Its token must be sent from this host, or from the same IPv6 /64. */
  readonly calledHost: string;
  /** The token that identifies the called node. */
  readonly token: Uint8Array;
}

/** Forwarded datagrams and bytes. Dropped datagrams exceeded a limit or were sent by another host. */
export interface RelayCounters {
  datagrams: number;
  bytes: number;
  dropped: number;
}

/** One of the two ports. */
class RelayPort {
  readonly socket: RelaySocket;
  readonly port: number;
  host = '';
  remotePort = 0;

  /**
   * @param expected the host that determines the address family
   * @throws SvcError `connect_failed` if the system has no port
   */
  constructor(socket: RelaySocket, expected: string) {
    this.socket = socket;
    bindAnyPort(socket, expected.includes(':') ? '::' : '0.0.0.0');
    this.port = socket.address()?.port ?? 0;
  }

  setRemote({ host, port }: Address): void {
    this.host = host;
    this.remotePort = port;
  }

  isRemote(from: Address): boolean {
    return from.port === this.remotePort && from.host === this.host;
  }
}

export class RelaySession {
  readonly #peers: RelayPeers;
  readonly #account: RelayAccount;
  readonly #counters: RelayCounters;
  readonly #caller: RelayPort;
  readonly #called: RelayPort;
  /** True if a datagram was forwarded since the last check. */
  #wasActive = false;

  constructor(peers: RelayPeers, createSocket: () => RelaySocket, account: RelayAccount, counters: RelayCounters) {
    this.#peers = peers;
    this.#account = account;
    this.#counters = counters;
    this.#caller = new RelayPort(createSocket(), peers.callerHost);
    try {
      this.#called = new RelayPort(createSocket(), peers.calledHost);
    } catch (error) {
      detach(this.#caller.socket.close());
      throw error;
    }
    this.#caller.socket.on('message', (datagram, from) => {
      if (this.#isCaller(datagram, from)) this.#forward(datagram, this.#called);
    });
    this.#called.socket.on('message', (datagram, from) => {
      if (this.#isCalled(datagram, from)) this.#forward(datagram, this.#caller);
    });
  }

  /** The port for each node. */
  get ports(): { readonly caller: number; readonly called: number } {
    return { caller: this.#caller.port, called: this.#called.port };
  }

  /** True if both nodes have joined. */
  get isJoined(): boolean {
    return this.#caller.remotePort !== 0 && this.#called.remotePort !== 0;
  }

  /** Whether a datagram was forwarded since the last call. */
  takeActivity(): boolean {
    const wasActive = this.#wasActive;
    this.#wasActive = false;
    return wasActive;
  }

  async close(): Promise<void> {
    await Promise.all([this.#caller.socket.close(), this.#called.socket.close()]);
  }

  #isCaller(datagram: Uint8Array, from: Address): boolean {
    if (this.#caller.isRemote(from)) return true;
    const isFirst = this.#caller.remotePort === 0 && from.host === this.#peers.callerHost;
    if (isFirst && datagram.length >= QUIC_INITIAL_BYTES && ((datagram[0] ?? 0) & LONG_HEADER) !== 0) {
      this.#caller.setRemote(from);
      return true;
    }
    this.#counters.dropped++;
    return false;
  }

  /**
   * The token is echoed each time it arrives, because an echo may get lost; it is never forwarded. The called node
   * knows the token and could forge the source of a datagram, so the token is accepted only from its own host.
   * Otherwise the relay would send the caller's packets to a victim.
   */
  #isCalled(datagram: Uint8Array, from: Address): boolean {
    const isKnown = this.#called.isRemote(from);
    const mayBeFirst =
      this.#called.remotePort === 0 && subscriberOf(from.host) === subscriberOf(this.#peers.calledHost);
    if (datagram.length === RELAY_TOKEN_BYTES && (isKnown || mayBeFirst)) {
      if (!equalBytes(datagram, this.#peers.token)) return isKnown;
      this.#called.setRemote(from);
      this.#called.socket.trySend(this.#peers.token, from.port, from.host);
      return false;
    }
    if (!isKnown) this.#counters.dropped++;
    return isKnown;
  }

  #forward(datagram: Uint8Array, to: RelayPort): void {
    const { length } = datagram;
    if (to.remotePort === 0 || length > MAX_RELAYED_BYTES || !this.#account.spend(length)) {
      this.#counters.dropped++;
      return;
    }
    this.#wasActive = true;
    this.#counters.datagrams++;
    this.#counters.bytes += length;
    to.socket.trySend(datagram, to.remotePort, to.host);
  }
}

/** Limits of the relay. */
export interface RelayLimits extends RelayByteLimits {
  /** Concurrent sessions. */
  readonly sessions: number;
  readonly sessionsPerSource: number;
}

/** Concurrent relayed sessions. */
export const MAX_RELAYED = 64;
/** Concurrent relayed sessions of one source. */
export const MAX_RELAYED_PER_SOURCE = 8;
export const DEFAULT_RELAY_LIMITS: RelayLimits = {
  sessions: MAX_RELAYED,
  sessionsPerSource: MAX_RELAYED_PER_SOURCE,
  bytesPerSecond: RELAY_BYTES_PER_S,
  bytesPerSecondPerSource: RELAY_BYTES_PER_S_PER_SOURCE,
  bytesPerDay: RELAY_BYTES_PER_DAY,
  bytesPerDayPerSource: RELAY_BYTES_PER_DAY_PER_SOURCE,
};

/** One source gets a fraction of each limit, so that it cannot use all capacity. */
const SESSIONS_DIVISOR: number = MAX_RELAYED / MAX_RELAYED_PER_SOURCE;
const RATE_DIVISOR: number = RELAY_BYTES_PER_S / RELAY_BYTES_PER_S_PER_SOURCE;
const DAY_DIVISOR: number = RELAY_BYTES_PER_DAY / RELAY_BYTES_PER_DAY_PER_SOURCE;

/** Settings of the owner. */
interface RelaySettings {
  readonly help_others: boolean;
  readonly relay_sessions: number;
  readonly relay_bytes_per_second: number;
  readonly relay_bytes_per_day: number;
}

/** Limits of bytes in which one source gets the same fraction as by default. */
export function relayByteLimits(bytesPerSecond: number, bytesPerDay: number): RelayByteLimits {
  return {
    bytesPerSecond,
    bytesPerSecondPerSource: bytesPerSecond / RATE_DIVISOR,
    bytesPerDay,
    bytesPerDayPerSource: bytesPerDay / DAY_DIVISOR,
  };
}

/** Derives limits from settings. One source gets the same fraction as by default. */
export function relayLimits(settings: RelaySettings): RelayLimits {
  const { help_others, relay_sessions, relay_bytes_per_second, relay_bytes_per_day } = settings;
  return {
    sessions: help_others ? relay_sessions : 0,
    sessionsPerSource: Math.ceil(relay_sessions / SESSIONS_DIVISOR),
    ...relayByteLimits(relay_bytes_per_second, relay_bytes_per_day),
  };
}

/** Interval between checks of sessions, milliseconds. */
const CHECK_MS = 1_000;
/** An idle session expires after this time, milliseconds. Both nodes send keepalives every few seconds. */
export const RELAY_IDLE_MS = 30_000;
/** Time for both nodes to join, milliseconds. */
export const RELAY_JOIN_MS = 15_000;

interface OpenSession {
  readonly session: RelaySession;
  readonly account: RelayAccount;
  readonly share: QuotaShare;
  /** When a datagram was last forwarded, or when the session was opened. */
  activeAt: number;
}

/** A session that was opened for two nodes. */
export interface RelayOffer {
  /** The port that the caller dials. */
  readonly callerPort: number;
  /** The port that the called node sends its token to. */
  readonly calledPort: number;
  readonly token: Uint8Array;
  /** Closes the session if the called node does not join. */
  readonly cancel: () => void;
}

export interface RelayUsage {
  readonly sessions: number;
  readonly datagrams: number;
  readonly bytes: number;
  readonly dropped: number;
}

interface RelayDependencies extends NodeParts {
  readonly createSocket: () => RelaySocket;
  /** Default: budgets of its own. */
  readonly budgets?: RelayBudgets;
}

/** A node that is charged for a session. */
export type RelayHolder = QuotaHolder & { readonly source: string };

function strangerAt(host: string): RelayHolder {
  return { node: subscriberOf(host), source: host, named: false };
}

export class Relay {
  readonly #limits: RelayLimits;
  readonly #deps: RelayDependencies;
  readonly #budgets: RelayBudgets;
  readonly #quota: Quota;
  readonly #sessions = new Set<OpenSession>();
  readonly #counters: RelayCounters = { datagrams: 0, bytes: 0, dropped: 0 };
  #checks: RepeatingTask | null = null;

  constructor(limits: Partial<RelayLimits>, dependencies: RelayDependencies) {
    this.#limits = { ...DEFAULT_RELAY_LIMITS, ...limits };
    this.#deps = dependencies;
    this.#budgets = dependencies.budgets ?? new RelayBudgets(this.#limits, dependencies);
    this.#quota = new Quota({
      perSource: this.#limits.sessionsPerSource,
      perNetwork: SOURCES_PER_NETWORK * this.#limits.sessionsPerSource,
      total: this.#limits.sessions,
      reserved: Math.floor(RESERVED_RELAY_PART * this.#limits.sessions),
    });
  }

  /** Current sessions, and totals since the start. */
  get usage(): RelayUsage {
    return { sessions: this.#sessions.size, ...this.#counters };
  }

  /**
   * Opens a session; null if a limit is reached, or the system has no ports.
   * @param callerHost where the caller is seen. Its handshake must be sent from there
   * @param calledHost where the called node is seen. Its token must be sent from there
   * @param holder the caller, which is charged. Default: a stranger at its host
   */
  open(callerHost: string, calledHost: string, holder: RelayHolder = strangerAt(callerHost)): RelayOffer | null {
    const { source } = holder;
    const account = this.#budgets.open(holder);
    if (account === null) return null;
    const onEvict = (): void => {
      if (evictable !== null) this.#close(evictable);
    };
    let evictable: OpenSession | null = null;
    const share = this.#quota.take(holder, { onEvict });
    if (share === null) {
      account.close();
      return null;
    }
    const token = new Uint8Array(randomBytes(RELAY_TOKEN_BYTES));
    const session = this.#session({ callerHost, calledHost, token }, account);
    if (session === null) {
      share.release();
      account.close();
      return null;
    }
    const opened: OpenSession = { session, account, share, activeAt: this.#deps.clock.monotonic() };
    evictable = opened;
    this.#sessions.add(opened);
    this.#startChecks();
    this.#deps.log.debug({ session: toHex(token.subarray(0, 4)), source }, 'opened a relayed session');
    const { caller, called } = session.ports;
    return { callerPort: caller, calledPort: called, token, cancel: () => this.#close(opened) };
  }

  #session(peers: RelayPeers, account: RelayAccount): RelaySession | null {
    try {
      return new RelaySession(peers, this.#deps.createSocket, account, this.#counters);
    } catch (error) {
      this.#deps.log.warn({ error }, 'cannot relay: this machine cannot open another UDP port');
      return null;
    }
  }

  async stop(): Promise<void> {
    const sessions = [...this.#sessions].map(({ session }) => session);
    for (const entry of this.#sessions) this.#remove(entry);
    this.#stopChecks();
    await Promise.all(sessions.map((session) => session.close()));
  }

  /** The timer runs only while there are sessions. */
  #startChecks(): void {
    if (this.#checks !== null) return;
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'cannot check relayed sessions');
    this.#checks = every(clock, { periodMs: CHECK_MS, onError }, () => this.#check());
  }

  #stopChecks(): void {
    this.#checks?.stop();
    this.#checks = null;
  }

  #check(): void {
    const now = this.#deps.clock.monotonic();
    for (const entry of this.#sessions) {
      if (entry.session.takeActivity()) entry.activeAt = now;
      const idleTimeout = entry.session.isJoined ? RELAY_IDLE_MS : RELAY_JOIN_MS;
      if (now - entry.activeAt > idleTimeout || entry.account.isUsedUp) this.#close(entry);
    }
  }

  #close(entry: OpenSession): void {
    if (!this.#remove(entry)) return;
    detach(entry.session.close());
    if (this.#sessions.size === 0) this.#stopChecks();
  }

  #remove(entry: OpenSession): boolean {
    if (!this.#sessions.delete(entry)) return false;
    entry.share.release();
    entry.account.close();
    return true;
  }
}
