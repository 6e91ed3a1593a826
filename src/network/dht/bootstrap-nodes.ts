/** The nodes to turn to when the routing table is empty: the bootstrap list, what mDNS found, what was known before. */
import { lookup } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { nodeScope } from './node-address.ts';

/** Found and remembered nodes that are kept beside the bootstrap list. */
const MAX_FOUND = 32;
/** For how long a resolved name is used before it is asked again. */
const NAME_TTL_MS = 300_000;

interface BootstrapNodesDependencies {
  readonly clock: Clock;
  /** The IPv4 address of a host name; the system's resolver where left out. */
  readonly resolveName?: (name: string) => Promise<string>;
}

export class BootstrapNodes {
  readonly #bootstrap: readonly Address[];
  readonly #found = new LruCache<string, Address>({ maxEntries: MAX_FOUND });
  readonly #names: LruCache<string, string>;
  readonly #resolveName: (name: string) => Promise<string>;

  constructor(bootstrap: readonly Address[], dependencies: BootstrapNodesDependencies) {
    this.#bootstrap = bootstrap;
    this.#names = new LruCache({ maxEntries: bootstrap.length + 1, ttlMs: NAME_TTL_MS }, dependencies);
    this.#resolveName = dependencies.resolveName ?? (async (name) => (await lookup(name, { family: 4 })).address);
  }

  /** Adds a node that was found or remembered; false for an address that cannot be one, or is known. */
  add(address: Address): boolean {
    if (nodeScope(address.host) === IP_SCOPE.none || address.port < 1 || address.port > 0xffff) return false;
    const key = formatAddress(address);
    if (this.#found.has(key)) return false;
    this.#found.set(key, { host: address.host, port: address.port });
    return true;
  }

  /** Looks up the names of the bootstrap list that are not known, or no longer. */
  async resolve(): Promise<void> {
    const unknown = this.#bootstrap.filter(({ host }) => !isIPv4(host) && !this.#names.has(host));
    await Promise.allSettled(
      unknown.map(async ({ host }) => {
        const address = await this.#resolveName(host);
        if (isIPv4(address)) this.#names.set(host, address);
      }),
    );
  }

  /** All of them that have an address now, the bootstrap list first. */
  addresses(): Address[] {
    const listed = this.#bootstrap.flatMap(({ host, port }) => {
      const ip = isIPv4(host) ? host : this.#names.peek(host);
      return ip === undefined ? [] : [{ host: ip, port }];
    });
    return [...listed, ...this.#found.values()];
  }
}
