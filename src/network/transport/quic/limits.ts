/** How much strangers may take from the endpoint. */

/** Accepted connections at one time. */
export const MAX_CONNECTIONS = 1024;

/** Of these, the ones that only known nodes may use. */
export const RESERVED_CONNECTIONS = 256;

/** Accepted connections of strangers from one network: an IPv4 /24 or IPv6 /48. */
export const MAX_CONNECTIONS_PER_NETWORK = 128;

/** Accepted connections from one source (see `Path`): room for two nodes that use all of theirs. */
export const MAX_CONNECTIONS_PER_SOURCE = 48;

/** Accepted connections of one node key; the oldest gives way, as it is likely a dead one. */
export const MAX_CONNECTIONS_PER_KEY = 8;

/**
 * Streams that the other side may have open on one connection: a tunnel holds 5,000 connections, and
 * the engine sets some 40 bytes aside for each stream that may come, twice as many from 7,169 on.
 */
export const MAX_STREAMS_PER_CONNECTION = 7_000;

/** Bytes that the other side may send ahead of a reader on one stream: 250 Mbit/s at 100 ms. */
export const STREAM_WINDOW_BYTES = 3 * 1024 * 1024;

/**
 * The same for all streams of one connection: the most that its slow readers make us hold. 40
 * stopped readers use it up, and then the other streams of the connection wait for them.
 */
export const CONNECTION_WINDOW_BYTES = 120 * 1024 * 1024;

export interface ConnectionLimits {
  readonly connections: number;
  readonly reservedConnections: number;
  readonly connectionsPerSource: number;
  readonly connectionsPerNetwork: number;
  readonly connectionsPerKey: number;
  /** Counts 127.0.0.0/8 and ::1 too; otherwise not, as all programs of this machine are one person's. */
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
