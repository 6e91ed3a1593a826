/** How long the ways to a node that need nobody else are tried alone, by what is known of where it is. Pure. */

import type { NatMapping } from '../../foundation/domain/directory.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import { isUnreached, type NodePlace } from '../peers/dial.ts';
import { type InterfaceAddress, isOnNetworkOf } from './path-kind.ts';
import { ipv6Between } from './public-ipv6.ts';

/** Head start of addresses that strangers reach, over a punched way: milliseconds. */
export const REACHED_HEAD_START_MS = 300;
/**
 * The same of addresses that may lead there though strangers do not reach the node: those of a network that we are on,
 * where a handshake takes a few milliseconds, and public ones behind a firewall.
 */
export const UNLIKELY_HEAD_START_MS = 100;
/** Head start of a punched way over a relay, milliseconds: as long as one takes at a round trip of some 100. */
export const PUNCH_HEAD_START_MS = 300;
/** Head start of a relay over random ports, whose handshakes hold up all others of a node: milliseconds. */
export const RELAY_HEAD_START_MS = 1_000;
/** NAT type of a record: another outer port for each that is written to. */
const SYMMETRIC = 4;

export interface OwnSide {
  /** The addresses of this machine's interfaces. */
  readonly interfaces: () => readonly InterfaceAddress[];
  /** What stands before us. */
  readonly mapping: () => NatMapping;
}

/** Milliseconds from the beginning of an attempt to when addresses of the node have been tried long enough alone. */
function straightMs(place: NodePlace, { interfaces }: OwnSide): number {
  if (!isUnreached(place)) return REACHED_HEAD_START_MS;
  const own = interfaces();
  const mayLead = place.addresses.some(({ host }) => ipScope(host) === IP_SCOPE.public || isOnNetworkOf(host, own));
  return mayLead ? UNLIKELY_HEAD_START_MS : 0;
}

/** Whether both nodes have IPv6, so that the numbers of ports do not matter. */
function haveIpv6({ addresses }: NodePlace, { interfaces }: OwnSide): boolean {
  return ipv6Between(addresses, interfaces()) !== null;
}

/**
 * Milliseconds from the beginning of an attempt to that of a punched way.
 * @param relays whether a relay is tried too
 */
export function punchDelayMs(place: NodePlace, own: OwnSide, relays: boolean): number {
  const isLast = relays && needsWitnesses(place, own) && !haveIpv6(place, own);
  return straightMs(place, own) + (isLast ? RELAY_HEAD_START_MS : 0);
}

/** True where the ports of both sides change, so that nothing can be punched over IPv4. */
function needsRelay({ natType }: NodePlace, { mapping }: OwnSide): boolean {
  return natType === SYMMETRIC && mapping() === 'symmetric';
}

/** Milliseconds from the beginning of an attempt to that of a relayed way. */
export function relayDelayMs(place: NodePlace, own: OwnSide): number {
  const isFirst = (needsRelay(place, own) || needsWitnesses(place, own)) && !haveIpv6(place, own);
  return straightMs(place, own) + (isFirst ? 0 : PUNCH_HEAD_START_MS);
}

/**
 * True where the port of one side changes, and something stands before the other: random ones are opened, and that takes
 * the word of several helpers.
 */
export function needsWitnesses({ natType }: NodePlace, { mapping }: OwnSide): boolean {
  if (mapping() === 'open') return false;
  return (natType === SYMMETRIC) !== (mapping() === 'symmetric');
}
