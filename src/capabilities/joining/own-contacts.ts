/** The addresses at which other nodes can join through this node. Pure. */
import { type Address, formatAddress, isEveryInterface } from '../../foundation/address.ts';
import { type InvitationReach, MAX_INVITATION_CONTACTS } from '../../foundation/domain/joining.ts';
import type { PinnedContact } from '../../foundation/invitation.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { OwnAddress } from '../../network/reachability/own-address.ts';

/** LAN addresses in an invitation. A machine may have one for each virtual machine. */
const MAX_LAN = 2;

export interface NodeFacts {
  readonly nodeKey: Uint8Array;
  /** Listen address of the record network. The host is `0.0.0.0` for all interfaces. */
  readonly dht: Address;
  /** Known addresses for QUIC, on the same hosts. */
  readonly known: readonly OwnAddress[];
  /** Router ports mapped to the record network's port. */
  readonly mapped: readonly Address[];
  /** Whether strangers have reached the node. */
  readonly isReached: boolean;
  /** Other nodes of the network, with their record network addresses. */
  readonly others: readonly PinnedContact[];
}

/** The record network uses IPv4 addresses, or names that resolve to them. */
function isUsable({ host }: Address): boolean {
  return canonicalIp(host) === null || !host.includes(':');
}

function isWide({ host }: Address): boolean {
  return canonicalIp(host) === null || ipScope(host) === IP_SCOPE.public;
}

/** Its own addresses, best first. */
function ownAddresses({ dht, known, mapped }: NodeFacts): Address[] {
  const hosts = known
    .filter(({ source, verifiedBy }) => source !== 'mapped' && (source !== 'observed' || verifiedBy !== null))
    .map(({ address }) => address.host);
  const all = isEveryInterface(dht.host) ? hosts.map((host) => ({ host, port: dht.port })) : [dht];
  const places = new Map([...mapped, ...all].filter(isUsable).map((place) => [formatAddress(place), place]));
  const [wide, near] = [[...places.values()].filter(isWide), [...places.values()].filter((place) => !isWide(place))];
  // Loopback addresses are used only if there are no others.
  const lan = near.filter(({ host }) => ipScope(host) > IP_SCOPE.loopback);
  return [...wide, ...(wide.length + lan.length > 0 ? lan.slice(0, MAX_LAN) : near)];
}

/** The nodes that an invitation names, and the networks that reach them. */
export function contactsForInvitation(facts: NodeFacts): {
  readonly contacts: readonly PinnedContact[];
  readonly reach: InvitationReach;
} {
  const own = ownAddresses(facts).map((place): PinnedContact => ({ ...place, nodeKey: facts.nodeKey }));
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
