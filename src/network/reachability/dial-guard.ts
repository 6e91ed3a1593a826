/**
 * Decides which addresses from strangers' records may be dialed. The publisher of a record decides where callers send
 * packets, so those must not reach internal services of this machine or of other networks.
 */
import { isIP } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { canonicalIp, IP_SCOPE, inIpv4Network, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { mayDialPort } from '../transport/udp-socket.ts';
import { isPublished, type OwnAddress } from './own-addresses.ts';

/* The kind of a path between the local socket and an address. Pure. */

/** An address of an interface of this machine, with its network: `192.0.2.7/24`. */
export interface InterfaceAddress {
  readonly address: string;
  readonly cidr: string | null;
}

/** True for addresses in the networks of this machine's interfaces. */
export function isOnNetworkOf(host: string, interfaces: readonly InterfaceAddress[]): boolean {
  const isV6 = isIP(host) === 6;
  return interfaces.some(({ address, cidr }) => {
    if (isV6) return isIP(address) === 6 && subscriberOf(address) === subscriberOf(host);
    return cidr !== null && inIpv4Network(host, cidr);
  });
}

/** True for addresses in the networks of this machine and for all other non-public addresses. */
function isLocal(host: string, interfaces: readonly InterfaceAddress[]): boolean {
  return ipScope(host) < IP_SCOPE.public || isOnNetworkOf(host, interfaces);
}

/**
 * The kind of an incoming or outgoing path. If all published addresses of the family are mapped ports, an incoming
 * connection from the Internet used a mapped port.
 */
export function kindOfPath(
  remote: Address,
  outbound: boolean,
  interfaces: readonly InterfaceAddress[],
  own: readonly OwnAddress[],
): PathKind {
  if (isLocal(remote.host, interfaces)) return 'lan';
  const family = isIP(remote.host);
  const reachable = own.filter(
    (one) => isPublished(one) && isIP(one.address.host) === family && ipScope(one.address.host) === IP_SCOPE.public,
  );
  const onlyMapped = reachable.length > 0 && reachable.every(({ source }) => source === 'mapped');
  return !outbound && onlyMapped ? 'mapped' : 'direct';
}

/** Private IPv4 networks that are routed within one site: RFC 1918, and RFC 6598, which is also used by VPN software. */
const PRIVATE_BLOCKS = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'] as const;

interface DialGuardFacts {
  readonly interfaces: () => readonly InterfaceAddress[];
  /** True if loopback addresses may be dialed. */
  readonly usesLoopback: () => boolean;
}

export class DialGuard {
  readonly #facts: DialGuardFacts;

  constructor(facts: DialGuardFacts) {
    this.#facts = facts;
  }

  /**
   * Whether an address from a stranger's record may be dialed. The host is an IP address; DNS can return IPv4-mapped
   * addresses too.
   */
  mayDial({ host: named, port }: Address): boolean {
    const host = canonicalIp(named);
    if (host === null || !mayDialPort(port)) return false;
    const scope = ipScope(host);
    if (scope === IP_SCOPE.public) return true;
    if (scope === IP_SCOPE.loopback) return this.#facts.usesLoopback();
    return scope === IP_SCOPE.private && this.#isRoutedLocally(host);
  }

  /**
   * True for networks of this machine, and for networks that may be routed from there: a site has many networks, and
   * VPN interfaces are point-to-point.
   */
  #isRoutedLocally(host: string): boolean {
    const interfaces = this.#facts.interfaces();
    if (isOnNetworkOf(host, interfaces)) return true;
    const block = PRIVATE_BLOCKS.find((network) => inIpv4Network(host, network));
    return interfaces.some(({ address }) =>
      block === undefined
        ? address.includes(':') && ipScope(address) === IP_SCOPE.private
        : inIpv4Network(address, block),
    );
  }
}
