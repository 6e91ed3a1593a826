/** What a path is whose ends are our socket and an address. Pure. */
import { isIP } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { IP_SCOPE, inIpv4Network, ipScope, subscriberOf } from '../../foundation/ip.ts';
import { isTold, type OwnAddress } from './own-address.ts';

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
