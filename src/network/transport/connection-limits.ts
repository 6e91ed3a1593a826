/** Limits of connections and streams that all adapters share, and the table of accepted connections that enforces them. */
import { toHex } from '../../foundation/bytes.ts';
import { Quota, type QuotaLevel, type QuotaShare } from '../../foundation/quota.ts';
import type { Connection } from './types.ts';

/** Default timeout of a dial, milliseconds. */
export const DIAL_TIMEOUT_MS = 10_000;

/** How long `openStream` waits when the peer's stream limit is reached, milliseconds. */
export const OPEN_STREAM_TIMEOUT_MS = 10_000;

/** Accepted connections at one time. */
export const MAX_CONNECTIONS = 1024;

/** Of these, connections that only known nodes can use. */
export const RESERVED_CONNECTIONS = 256;

/** Accepted connections of strangers from one network: an IPv4 /24 or IPv6 /48. */
export const MAX_CONNECTIONS_PER_NETWORK = 128;

/** Accepted connections from one source (see `Path`): enough for two busy nodes. */
export const MAX_CONNECTIONS_PER_SOURCE = 48;

/** Accepted connections of strangers at the lent ports of one helper, except of the helper itself … */
export const MAX_CONNECTIONS_PER_LENT_SOURCE = 16;

/** … and at the ports of all helpers. */
export const MAX_LENT_CONNECTIONS = 64;

/** Accepted connections of one node key. A new one evicts the oldest, which is probably dead. */
export const MAX_CONNECTIONS_PER_KEY = 8;

/**
 * Streams that the peer can have open on one connection. A tunnel carries 5,000 connections. The QUIC engine reserves
 * about 40 bytes per stream, and twice as many from 7,169 streams.
 */
export const MAX_STREAMS_PER_CONNECTION = 7_000;

/** Unread bytes of one stream: 250 Mbit/s at 100 ms. The peer's writer stops there. */
export const STREAM_WINDOW_BYTES = 3 * 1024 * 1024;

/**
 * Unread bytes of all streams of one connection. Forty unread streams reach this limit; then the other streams of
 * the connection stop too.
 */
export const CONNECTION_WINDOW_BYTES = 120 * 1024 * 1024;

export interface ConnectionLimits {
  readonly connections: number;
  readonly reservedConnections: number;
  readonly connectionsPerSource: number;
  readonly connectionsPerNetwork: number;
  readonly connectionsPerKey: number;
  /** Also limits 127.0.0.0/8 and ::1. By default they are unlimited: all programs of this machine belong to its owner. */
  readonly countLoopback: boolean;
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  connections: MAX_CONNECTIONS,
  reservedConnections: RESERVED_CONNECTIONS,
  connectionsPerSource: MAX_CONNECTIONS_PER_SOURCE,
  connectionsPerNetwork: MAX_CONNECTIONS_PER_NETWORK,
  connectionsPerKey: MAX_CONNECTIONS_PER_KEY,
  countLoopback: false,
};

/** At most 1 in 4 connections is reserved for known nodes. */
const MAX_RESERVE_DIVISOR = 4;

export class ConnectionTable<C extends Connection> {
  readonly #quota: Quota;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  readonly #shares = new Map<C, QuotaShare>();

  /** @param isKnown true for a node that this node uses, or that hosts an agent the owner admitted by name. It can evict strangers. */
  constructor(limits: ConnectionLimits, isKnown: (nodeKey: Uint8Array) => boolean = () => false) {
    const { connections, reservedConnections, connectionsPerKey, connectionsPerSource, connectionsPerNetwork } = limits;
    this.#quota = new Quota(
      {
        perNode: connectionsPerKey,
        perSource: connectionsPerSource,
        perNetwork: connectionsPerNetwork,
        perLentSource: Math.min(connectionsPerSource, MAX_CONNECTIONS_PER_LENT_SOURCE),
        perLentNetwork: Math.min(connectionsPerNetwork, MAX_LENT_CONNECTIONS),
        total: connections,
        reserved: Math.min(reservedConnections, Math.floor(connections / MAX_RESERVE_DIVISOR)),
      },
      // The dead connections of a node that restarts often do not block it.
      { ownYields: true, countLoopback: limits.countLoopback },
    );
    this.#isKnown = isKnown;
  }

  get size(): number {
    return this.#shares.size;
  }

  /** Adds a connection, possibly by closing another one, or returns the exhausted limit. */
  admit(connection: C): QuotaLevel | null {
    const { remoteKey, path } = connection;
    const holder = { node: toHex(remoteKey), source: path.source, named: this.#isKnown(remoteKey) };
    const share = this.#quota.take(holder, {
      onEvict: () => {
        this.#shares.delete(connection);
        connection.close();
      },
    });
    if (share === null) return this.#quota.fullLevel(holder);
    this.#shares.set(connection, share);
    return null;
  }

  remove(connection: C): void {
    this.#shares.get(connection)?.release();
    this.#shares.delete(connection);
  }

  [Symbol.iterator](): Iterator<C> {
    return this.#shares.keys();
  }
}
