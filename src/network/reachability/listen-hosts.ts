/** Whether this machine has the addresses that it is configured to listen on. */
import { type Address, isLoopbackHost } from '../../foundation/address.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';

/**
 * The configured hosts. Sockets stay bound when the machine loses an address, and work again when it returns. A system
 * may also let programs listen on addresses that no interface has, so a host is only missing after it was seen.
 */
export class ListenHosts {
  readonly #hosts: readonly string[];
  readonly #interfaces: () => readonly string[];
  readonly #seen = new Set<string>();

  /**
   * @param listens the configured addresses; hosts may be empty
   * @param interfaces the addresses of this machine
   */
  constructor(listens: readonly Pick<Address, 'host'>[], interfaces: () => readonly string[]) {
    const named = listens.map(({ host }) => canonicalIp(host)).filter((host) => host !== null);
    this.#hosts = [...new Set(named)].filter((host) => ipScope(host) !== IP_SCOPE.none && !isLoopbackHost(host));
    this.#interfaces = interfaces;
    this.missing();
  }

  /** The hosts that this machine had and does not have now. */
  missing(): readonly string[] {
    if (this.#hosts.length === 0) return [];
    const present = new Set(this.#interfaces().map((host) => canonicalIp(host)));
    for (const host of this.#hosts) if (present.has(host)) this.#seen.add(host);
    return this.#hosts.filter((host) => this.#seen.has(host) && !present.has(host));
  }
}
