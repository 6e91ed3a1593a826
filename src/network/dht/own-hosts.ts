/** This machine's own IPv4 addresses: they change, and reading them takes a moment, so they are read now and then. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, inIpv4Network } from '../../foundation/ip.ts';
import { nodeScope } from './node-address.ts';

const READ_AGAIN_MS = 5000;
const LOOPBACK = '127.0.0.1';

export interface OwnHosts {
  /** Whether a host is an address of this machine. */
  has(host: string): boolean;
  /**
   * The address from which a socket on every interface writes to a host, where that is known: the same one to an own
   * address, that of the interface to its network. Null where the routes decide.
   */
  sourceTo(host: string): string | null;
}

export function ownHosts({ clock }: { readonly clock: Clock }): OwnHosts {
  /** With the network of its interface, by address. */
  let networks: ReadonlyMap<string, string | null> = new Map();
  let readAt = Number.NEGATIVE_INFINITY;
  const current = (): typeof networks => {
    const now = clock.now();
    if (Math.abs(now - readAt) > READ_AGAIN_MS) {
      readAt = now;
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      networks = new Map(all.map(({ address, cidr }) => [address, cidr]));
    }
    return networks;
  };
  return {
    has: (host) => current().has(host),
    sourceTo: (host) => {
      if (nodeScope(host) === IP_SCOPE.loopback) return LOOPBACK;
      if (current().has(host)) return host;
      for (const [address, network] of current())
        if (network !== null && nodeScope(address) !== IP_SCOPE.none && inIpv4Network(host, network)) return address;
      return null;
    },
  };
}
