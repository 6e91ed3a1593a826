/** Public IPv6 addresses, which nothing translates: two nodes that have one can meet there whatever routers do to IPv4. Pure. */
import type { Address } from '../../foundation/address.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';

/** False for IPv4 that is written as IPv6. */
export function isPublicIpv6({ host }: Pick<Address, 'host'>): boolean {
  return canonicalIp(host)?.includes(':') === true && ipScope(host) === IP_SCOPE.public;
}

/** The first public IPv6 address of a node, where this machine has one too; null otherwise. */
export function ipv6Between(
  theirs: readonly Address[],
  interfaces: readonly { readonly address: string }[],
): Address | null {
  const isHere = interfaces.some(({ address }) => isPublicIpv6({ host: address }));
  return isHere ? (theirs.find(isPublicIpv6) ?? null) : null;
}
