/** The accepted connections of an endpoint, held within its limits. */
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { Log } from '../../../foundation/log.ts';
import { Quota, type QuotaLevel, type QuotaShare } from '../../../foundation/quota.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { awakeClock } from '../../../foundation/stall.ts';
import type { Connection } from '../types.ts';

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

/** Known nodes have at most one connection in this many to themselves. */
const MAX_RESERVE_DIVISOR = 4;

interface ConnectionTableDependencies {
  /** True for a node that this one uses, or that hosts an agent which the owner let in by name: strangers make room for it. */
  readonly isKnown?: ((nodeKey: Uint8Array) => boolean) | undefined;
}

export class ConnectionTable<C extends Connection> {
  readonly #quota: Quota;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  readonly #shares = new Map<C, QuotaShare>();

  constructor(limits: ConnectionLimits, { isKnown = () => false }: ConnectionTableDependencies = {}) {
    const { connections, reservedConnections, connectionsPerKey, connectionsPerSource, connectionsPerNetwork } = limits;
    this.#quota = new Quota(
      {
        perNode: connectionsPerKey,
        perSource: connectionsPerSource,
        perNetwork: connectionsPerNetwork,
        total: connections,
        reserved: Math.min(reservedConnections, Math.floor(connections / MAX_RESERVE_DIVISOR)),
      },
      // A node that restarts often is not kept out by its own dead connections.
      { ownYields: true, countLoopback: limits.countLoopback },
    );
    this.#isKnown = isKnown;
  }

  get size(): number {
    return this.#shares.size;
  }

  /** Takes a connection in, or names the level that leaves no room for it. Another one may be closed to make room. */
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

/*
 * Bounds what all connections of the endpoint together keep in memory for readers that have
 * stopped. The windows bound one connection; whoever opens many must not multiply that.
 */

/** Bytes that connections with stopped readers may hold together. */
export const MAX_HELD_BACK_BYTES = 256 * 1024 * 1024;

/** The same of the connections with one other node: somewhat more than one of them can hold. */
export const MAX_HELD_BACK_PER_NODE_BYTES = 128 * 1024 * 1024;

/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const MAX_HELD_BACK_PER_SOURCE_BYTES = 160 * 1024 * 1024;

/** The same of those in one IPv4 /24 or IPv6 /48. */
export const MAX_HELD_BACK_PER_NETWORK_BYTES = 192 * 1024 * 1024;

/** How often it is looked at; a reader counts as stopped that took nothing between two looks. */
export const HELD_BACK_INTERVAL_MS = 5_000;

/** A connection that may hold bytes for readers that have stopped. */
export interface Holder {
  /** The other node's key. */
  readonly remoteKey: Uint8Array;
  readonly path: { readonly source: string };
  /** The most that it may hold for readers that took nothing since the last call, bytes. */
  heldBackBytes(): number;
  close(): void;
}

interface ReceiveBudgetDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** True for nodes that give way after strangers. */
  readonly isKnown?: ((nodeKey: Uint8Array) => boolean) | undefined;
}

export class ReceiveBudget {
  readonly #holders: () => Iterable<Holder>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #isKnown: (nodeKey: Uint8Array) => boolean;
  #looks: RepeatingTask | null = null;

  /** @param holders every connection that stands */
  constructor(holders: () => Iterable<Holder>, dependencies: ReceiveBudgetDependencies) {
    this.#holders = holders;
    // In waking time: while we stalled, no reader could take anything.
    this.#clock = awakeClock(dependencies.clock);
    this.#log = dependencies.log;
    this.#isKnown = dependencies.isKnown ?? (() => false);
  }

  start(): void {
    const onError = (error: unknown): void => this.#log.warn({ error }, 'connections could not be looked at');
    this.#looks = every(this.#clock, { periodMs: HELD_BACK_INTERVAL_MS, onError }, () => this.#look());
  }

  stop(): void {
    this.#looks?.stop();
  }

  /** Lets in what fits, known nodes first and then those that hold the least; closes the rest. */
  #look(): void {
    const budget = new Quota({
      perNode: MAX_HELD_BACK_PER_NODE_BYTES,
      perSource: MAX_HELD_BACK_PER_SOURCE_BYTES,
      perNetwork: MAX_HELD_BACK_PER_NETWORK_BYTES,
      total: MAX_HELD_BACK_BYTES,
    });
    const held = [...this.#holders()].map((connection) => {
      const { remoteKey, path } = connection;
      const holder = { node: toHex(remoteKey), source: path.source, named: this.#isKnown(remoteKey) };
      return { connection, holder, bytes: connection.heldBackBytes() };
    });
    // Of two alike, the newer one stays.
    held.reverse().sort((a, b) => Number(b.holder.named) - Number(a.holder.named) || a.bytes - b.bytes);
    for (const { connection, holder, bytes } of held) {
      if (bytes === 0 || budget.take(holder, { amount: bytes }) !== null) continue;
      this.#log.warn({ bytes }, 'closed a connection that holds too much for readers that have stopped');
      connection.close();
    }
  }
}
