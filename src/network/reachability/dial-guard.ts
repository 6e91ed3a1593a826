/**
 * Which addresses of records that strangers signed are dialled. Whoever publishes a record decides where its callers send
 * packets, so they must not reach services of this machine, of its networks or of others.
 */
import { isIP } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { canonicalIp, IP_SCOPE, inIpv4Network, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { mayDialPort } from '../transport/udp-socket.ts';
import { isTold, type OwnAddress } from './own-addresses.ts';

/* What a path is whose ends are our socket and an address. Pure. */

/** An address of an interface of this machine, with its network: `192.0.2.7/24`. */
export interface InterfaceAddress {
  readonly address: string;
  readonly cidr: string | null;
}

/** True for addresses of this machine and of networks that it is part of. */
export function isOnNetworkOf(host: string, interfaces: readonly InterfaceAddress[]): boolean {
  const isV6 = isIP(host) === 6;
  return interfaces.some(({ address, cidr }) => {
    if (isV6) return isIP(address) === 6 && subscriberOf(address) === subscriberOf(host);
    return cidr !== null && inIpv4Network(host, cidr);
  });
}

/** The same, and all other private addresses. */
function isNear(host: string, interfaces: readonly InterfaceAddress[]): boolean {
  return ipScope(host) < IP_SCOPE.public || isOnNetworkOf(host, interfaces);
}

/**
 * The kind of a path from our socket to an address, or from there to us. Who comes from afar to a node of which others
 * know no address of that family but a port of its router came through that port.
 */
export function kindOfPath(
  remote: Address,
  outbound: boolean,
  interfaces: readonly InterfaceAddress[],
  own: readonly OwnAddress[],
): PathKind {
  if (isNear(remote.host, interfaces)) return 'lan';
  const family = isIP(remote.host);
  const reachable = own.filter(
    (one) => isTold(one) && isIP(one.address.host) === family && ipScope(one.address.host) === IP_SCOPE.public,
  );
  const onlyMapped = reachable.length > 0 && reachable.every(({ source }) => source === 'mapped');
  return !outbound && onlyMapped ? 'mapped' : 'direct';
}

/** Private IPv4 networks that are routed within one site: RFC 1918, and RFC 6598, which VPNs use too. */
const PRIVATE_BLOCKS = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'] as const;

interface DialGuardFacts {
  readonly interfaces: () => readonly InterfaceAddress[];
  /** True if nodes are reached at loopback addresses of this machine. */
  readonly usesLoopback: () => boolean;
}

export class DialGuard {
  readonly #facts: DialGuardFacts;

  constructor(facts: DialGuardFacts) {
    this.#facts = facts;
  }

  /** Whether an address that a stranger's record names may be dialled. Its host is an IP address; DNS gives IPv4-mapped ones too. */
  mayDial({ host: named, port }: Address): boolean {
    const host = canonicalIp(named);
    if (host === null || !mayDialPort(port)) return false;
    const scope = ipScope(host);
    if (scope === IP_SCOPE.public) return true;
    if (scope === IP_SCOPE.loopback) return this.#facts.usesLoopback();
    return scope === IP_SCOPE.private && this.#isOurs(host);
  }

  /** A network of this machine, or one that may be routed from there: a site has many networks, and VPNs have point-to-point interfaces. */
  #isOurs(host: string): boolean {
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
