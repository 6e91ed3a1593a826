/**
 * Which addresses of records that strangers signed are dialled. Whoever publishes a record decides where its callers send
 * packets, so they must not reach services of this machine, of its networks or of others.
 */
import type { Address } from '../../foundation/address.ts';
import { canonicalIp, IP_SCOPE, inIpv4Network, ipScope } from '../../foundation/ip.ts';
import { mayDialPort } from '../transport/ports.ts';
import { type InterfaceAddress, isOnNetworkOf } from './path-kind.ts';

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
