/** The way to a node by a relay: what is left where nothing else leads there, and sooner there than a punched one. */
import type { Clock } from '../../foundation/clock.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { NodeAt } from '../node-requests.ts';
import { type Dialer, isUnreached, type NodePlace } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { type InterfaceAddress, isOnNetworkOf } from './dial-guard.ts';
import { commonIpv6Address } from './interface-addresses.ts';
import type { PunchInitiator } from './punch-initiator.ts';
import { tryHelpers, usableHelpers } from './reachable-helpers.ts';
import type { TurnRendezvousClient } from './turn-rendezvous.ts';

/** Time to reach a node by a relay of any of its helpers, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;

/** Dials over a relay: the first helper of the node that is reachable, answers and has capacity. */
export function relayed(
  clock: Clock,
  pool: Pick<PeerTable, 'connect' | 'nodeKey'>,
  own: OwnSide,
  caller: Pick<PunchInitiator, 'relay'>,
): Dialer {
  return {
    kind: 'relay',
    delayMs: (place) => relayDelayMs(place, own),
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => usableHelpers(place, pool.nodeKey).length > 0,
    dial: async (place, signal) => {
      const ask = (helper: NodeAt, given: AbortSignal) => caller.relay(place.nodeKey, helper, given);
      return await tryHelpers(place, { ask }, clock, pool, signal);
    },
  };
}

/* The way to a node by a TURN server, of ours or of its own: the last one. */

/** Head start of all other ways, milliseconds. */
export const TURN_DELAY_MS = 2_000;
/** Time to reach a node by a TURN server, milliseconds. */
export const TURN_TIMEOUT_MS = 15_000;

/**
 * Dials over a TURN server. The first helper of the node that can introduces this node; a node without helpers is found
 * through the record network.
 * @param nodeKey the public key of this node
 * @param rendezvous for nodes without helpers
 * @param hasTurn true if this node has a TURN server
 */
export function turned(
  nodeKey: Uint8Array,
  caller: Pick<PunchInitiator, 'turn'>,
  rendezvous: Pick<TurnRendezvousClient, 'mayLead' | 'meet'>,
  hasTurn: () => boolean,
): Dialer {
  const helpersOf = (place: NodePlace) => usableHelpers(place, nodeKey);
  return {
    kind: 'turn',
    delayMs: () => TURN_DELAY_MS,
    timeoutMs: TURN_TIMEOUT_MS,
    mayLead: (place) => (helpersOf(place).length > 0 ? hasTurn() || place.hasTurn === true : rendezvous.mayLead(place)),
    dial: async (place, signal) => {
      if (helpersOf(place).length === 0) return await rendezvous.meet(place, signal);
      let last: unknown = new SvcError('connect_failed');
      for (const helper of helpersOf(place)) {
        try {
          return await caller.turn(place.nodeKey, helper, signal);
        } catch (error) {
          if (signal.aborted) throw error;
          last = error;
        }
      }
      throw last;
    },
  };
}

/* How long the ways to a node that need nobody else are tried alone, by what is known of where it is. Pure. */

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
  return commonIpv6Address(addresses, interfaces()) !== null;
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
