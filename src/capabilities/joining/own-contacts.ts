/** Where a node may be turned to by those who are to come into its network. Pure. */
import { type Address, formatAddress, isEveryInterface } from '../../foundation/address.ts';
import { type InvitationReach, MAX_INVITATION_CONTACTS } from '../../foundation/domain/joining.ts';
import type { PinnedContact } from '../../foundation/invitation.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { OwnAddress } from '../../network/reach/own-address.ts';

/** Addresses of its own network that a node tells; it may have one for each virtual machine. */
const MAX_LAN = 2;

export interface NodeFacts {
  readonly nodeKey: Uint8Array;
  /** Where the record network listens; the host is `0.0.0.0` for every interface. */
  readonly dht: Address;
  /** What is known of where QUIC is reached: on the same hosts. */
  readonly known: readonly OwnAddress[];
  /** Ports of the router that lead to the record network's. */
  readonly mapped: readonly Address[];
  /** Whether strangers have reached the node. */
  readonly isReached: boolean;
  /** Other nodes of the network, at their addresses in the record network. */
  readonly others: readonly PinnedContact[];
}

/** Nodes of the record network have IPv4 addresses, or names that lead to them. */
function isUsable({ host }: Address): boolean {
  return canonicalIp(host) === null || !host.includes(':');
}

function isWide({ host }: Address): boolean {
  return canonicalIp(host) === null || ipScope(host) === IP_SCOPE.public;
}

/** Its own addresses, the best first. */
function ownPlaces({ dht, known, mapped }: NodeFacts): Address[] {
  const hosts = known
    .filter(({ source, verifiedBy }) => source !== 'mapped' && (source !== 'observed' || verifiedBy !== null))
    .map(({ address }) => address.host);
  const all = isEveryInterface(dht.host) ? hosts.map((host) => ({ host, port: dht.port })) : [dht];
  const places = new Map([...mapped, ...all].filter(isUsable).map((place) => [formatAddress(place), place]));
  const [wide, near] = [[...places.values()].filter(isWide), [...places.values()].filter((place) => !isWide(place))];
  // What only this machine reaches is of use where there is nothing else.
  const lan = near.filter(({ host }) => ipScope(host) > IP_SCOPE.loopback);
  return [...wide, ...(wide.length + lan.length > 0 ? lan.slice(0, MAX_LAN) : near)];
}

/** The nodes that an invitation names, and from where they can be reached. */
export function contactsToGive(facts: NodeFacts): {
  readonly contacts: readonly PinnedContact[];
  readonly reach: InvitationReach;
} {
  const own = ownPlaces(facts).map((place): PinnedContact => ({ ...place, nodeKey: facts.nodeKey }));
  const wide = own.filter(isWide);
  const others = facts.isReached && wide.length > 0 ? [] : facts.others;
  const contacts = [...wide, ...others, ...own.filter((place) => !isWide(place))].slice(0, MAX_INVITATION_CONTACTS);
  const reach = (): InvitationReach => {
    if (facts.isReached && wide.length > 0) return 'anywhere';
    if (others.some(isWide)) return 'helped';
    if (wide.length > 0) return 'unproven';
    return contacts.some(({ host }) => ipScope(host) > IP_SCOPE.loopback) ? 'lan' : 'machine';
  };
  return { contacts, reach: reach() };
}
