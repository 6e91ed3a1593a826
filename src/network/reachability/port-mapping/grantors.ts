/** Who may grant ports in a network, in the order in which they are asked. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../../foundation/clock.ts';
import { IP_SCOPE, inIpv4Network, ipScope } from '../../../foundation/ip.ts';
import { GATEWAY_PORT } from './ask-gateway.ts';
import { NatPmpGrantor } from './nat-pmp.ts';
import { PcpGrantor } from './pcp.ts';
import type { Gateway, PortGrantor } from './types.ts';
import { UpnpGrantor } from './upnp.ts';

/** An address of an interface of this machine, with its network: `192.168.1.7/24`. */
interface InterfaceAddress {
  readonly address: string;
  readonly cidr: string | null;
}

interface GrantorDependencies {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly interfaces: () => readonly InterfaceAddress[];
}

/** Ways to a grantor; each is looked for only when those before it grant nothing, and is null where there is none. */
type GrantorFinder = (signal: AbortSignal) => Promise<PortGrantor | null>;

/** PCP and NAT-PMP at the router of the default route, and UPnP at whoever answers from our own network. */
export function grantorsAt({ host, ownHost }: Gateway, dependencies: GrantorDependencies): GrantorFinder[] {
  const { clock, interfaces } = dependencies;
  const mayBeRouter = (router: string): boolean =>
    ipScope(router) === IP_SCOPE.private &&
    router !== ownHost &&
    interfaces().some(({ address, cidr }) => address === ownHost && cidr !== null && inIpv4Network(router, cidr));
  const router = host === null ? null : { host, port: GATEWAY_PORT };
  return [
    async () => router && new PcpGrantor(router, ownHost, { clock, randomBytes }),
    async () => router && new NatPmpGrantor(router, { clock }),
    (signal) => UpnpGrantor.find({ ownHost, mayBeRouter }, dependencies, signal),
  ];
}
