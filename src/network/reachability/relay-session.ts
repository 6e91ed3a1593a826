/**
 * Two ports of a helper between which datagrams are handed over unread. Each port serves one address: that of the first
 * datagram which shows that it comes from the right node. The bytes are sealed for the nodes at the ends.
 */

import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import { subscriberOf } from '../../foundation/ip.ts';
import type { RelayBudget } from './relay-budget.ts';

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
