/**
 * Nodes that use this one and stand in no routing table, such as those behind NATs. They count once they have proven
 * their address with a token, and as long as they are heard.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { LruCache } from '../../foundation/lru-cache.ts';

/** Clients that are remembered; each of them also costs its node a record here. */
const MAX_CLIENTS = 1024;
/** A client that was silent for so long is gone, milliseconds: nodes ping their peers every 40 s. */
export const CLIENT_SILENT_MS = 180_000;

interface Client {
  readonly host: string;
  heardAt: number;
}

export class DhtClients {
  readonly #clock: Clock;
  readonly #clients = new LruCache<string, Client>({ maxEntries: MAX_CLIENTS });

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** Takes a request with a valid token. True if its sender was none of the clients. */
  proven(from: Address): boolean {
    const isNew = this.#clients.peek(formatAddress(from)) === undefined;
    this.#clients.set(formatAddress(from), { host: from.host, heardAt: this.#clock.now() });
    return isNew;
  }

  /** Takes any datagram. */
  heard(from: Address): void {
    const client = this.#clients.size === 0 ? undefined : this.#clients.peek(formatAddress(from));
    if (client !== undefined) client.heardAt = this.#clock.now();
  }

  /** How many there are. The nodes of a host that is in the table are not told from its other socket, and do not count. */
  count(tableHosts: ReadonlySet<string>): number {
    const since = this.#clock.now() - CLIENT_SILENT_MS;
    return this.#clients.values().filter(({ host, heardAt }) => heardAt >= since && !tableHosts.has(host)).length;
  }
}
