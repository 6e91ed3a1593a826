/** The accepted connections of an endpoint, held within its limits. */
import { toHex } from '../../../foundation/bytes.ts';
import { Quota, type QuotaLevel, type QuotaShare } from '../../../foundation/quota.ts';
import type { Connection } from '../types.ts';
import type { ConnectionLimits } from './limits.ts';

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
