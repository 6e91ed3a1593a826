/** The accepted connections of an endpoint, held within its limits. */
import { toHex } from '../../foundation/bytes.ts';
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { Tally } from '../../foundation/tally.ts';
import type { ConnectionLimits } from './limits.ts';
import type { QuicConnection } from './types.ts';

type ConnectionRefusal = 'too_many' | 'too_many_from_source';

export class ConnectionTable<C extends QuicConnection> {
  readonly #limits: ConnectionLimits;
  /** In order of arrival. */
  readonly #connections = new Set<C>();
  readonly #perSource = new Tally();
  readonly #perKey = new Map<string, Set<C>>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /**
   * Takes a connection in, or says why not. A key over its own limit loses its oldest connection,
   * so that a node which restarts often is not kept out by its own dead ones.
   */
  admit(connection: C): ConnectionRefusal | null {
    const key = toHex(connection.remoteKey);
    const ofKey = this.#perKey.get(key) ?? new Set<C>();
    const [oldest] = ofKey;
    if (oldest !== undefined && ofKey.size >= this.#limits.connectionsPerKey) {
      this.remove(oldest);
      oldest.close();
    }
    if (this.#connections.size >= this.#limits.connections) return 'too_many';
    const source = subscriberOf(connection.path.source);
    const counted = this.#limits.countLoopback || ipScope(connection.path.source) !== IP_SCOPE.loopback;
    if (counted && this.#perSource.of(source) >= this.#limits.connectionsPerSource) return 'too_many_from_source';
    this.#connections.add(connection);
    this.#perSource.add(source);
    ofKey.add(connection);
    this.#perKey.set(key, ofKey);
    return null;
  }

  remove(connection: C): void {
    if (!this.#connections.delete(connection)) return;
    this.#perSource.add(subscriberOf(connection.path.source), -1);
    const key = toHex(connection.remoteKey);
    const ofKey = this.#perKey.get(key);
    ofKey?.delete(connection);
    if (ofKey?.size === 0) this.#perKey.delete(key);
  }

  [Symbol.iterator](): Iterator<C> {
    return this.#connections.values();
  }
}
