/** Dials a node over a relay. It starts after direct dials and ordinary hole punching, but before hole punching with random ports. */
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

/** Timeout of a dial over relays, for all helpers of a node, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;

/** Dials over a relay: the first helper of the node that is reachable, answers and has capacity. */
export function relayDialer(
  clock: Clock,
  pool: Pick<PeerTable, 'connect' | 'nodeKey'>,
  own: LocalNetwork,
  initiator: Pick<PunchInitiator, 'relay'>,
): Dialer {
  return {
    kind: 'relay',
    delayMs: (place) => relayDelayMs(place, own),
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => usableHelpers(place, pool.nodeKey).length > 0,
    dial: async (place, signal) => {
      const ask = (helper: NodeAt, given: AbortSignal) => initiator.relay(place.nodeKey, helper, given);
      return await tryHelpers(place, { ask }, clock, pool, signal);
    },
  };
}

/* Dials over a TURN server of either node, after all other paths. */

/** Head start of all other paths, milliseconds. */
export const TURN_DELAY_MS = 2_000;
/** Timeout of a dial over a TURN server, milliseconds. */
export const TURN_TIMEOUT_MS = 15_000;

/**
 * Dials over a TURN server. The first helper of the node that can introduces this node; a node without helpers is found
 * through the record network.
 * @param nodeKey the public key of this node
 * @param rendezvous for nodes without helpers
 * @param hasTurn true if this node has a TURN server
 */
export function turnDialer(
  nodeKey: Uint8Array,
  initiator: Pick<PunchInitiator, 'turn'>,
  rendezvous: TurnRendezvousClient,
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
          return await initiator.turn(place.nodeKey, helper, signal);
        } catch (error) {
          if (signal.aborted) throw error;
          last = error;
        }
      }
      throw last;
    },
  };
}

/* Head starts of paths that need no other node, depending on the endpoint of the node. Pure. */

/** Head start over hole punching for addresses that strangers can reach, milliseconds. */
export const REACHABLE_HEAD_START_MS = 300;
/**
 * Head start for addresses that may work although strangers cannot reach the node, milliseconds. These are addresses in
 * the same network, where a handshake takes a few milliseconds, and public addresses behind a firewall.
 */
export const UNLIKELY_HEAD_START_MS = 100;
/** Head start of hole punching over a relay, milliseconds: its duration at a round-trip time of about 100 ms. */
export const PUNCH_HEAD_START_MS = 300;
/**
 * Head start of a relay over random ports, milliseconds, because their handshakes delay all other handshakes of a node.
 */
export const RELAY_HEAD_START_MS = 1_000;
/** NAT type of a record: a different external port for each destination. */
const SYMMETRIC = 4;

export interface LocalNetwork {
  /** The addresses of this machine's interfaces. */
  readonly interfaces: () => readonly InterfaceAddress[];
  /** The NAT mapping of this node. */
  readonly mapping: () => NatMapping;
}

/** How long addresses of the node are dialed alone, milliseconds. */
function directHeadStartMs(place: NodePlace, { interfaces }: LocalNetwork): number {
  if (!isUnreached(place)) return REACHABLE_HEAD_START_MS;
  const own = interfaces();
  const mayLead = place.addresses.some(({ host }) => ipScope(host) === IP_SCOPE.public || isOnNetworkOf(host, own));
  return mayLead ? UNLIKELY_HEAD_START_MS : 0;
}

/** Whether both nodes have IPv6, so that NAT mappings do not matter. */
function bothHaveIpv6({ addresses }: NodePlace, { interfaces }: LocalNetwork): boolean {
  return commonIpv6Address(addresses, interfaces()) !== null;
}

/**
 * Delay of hole punching from the start of a dial, milliseconds.
 * @param relays whether a relay is used too
 */
export function punchDelayMs(place: NodePlace, own: LocalNetwork, relays: boolean): number {
  const isLast = relays && needsWitnesses(place, own) && !bothHaveIpv6(place, own);
  return directHeadStartMs(place, own) + (isLast ? RELAY_HEAD_START_MS : 0);
}

/** True if both external ports vary, so that hole punching over IPv4 is impossible. */
function needsRelay({ natType }: NodePlace, { mapping }: LocalNetwork): boolean {
  return natType === SYMMETRIC && mapping() === 'symmetric';
}

/** Delay of a relay from the start of a dial, milliseconds. */
export function relayDelayMs(place: NodePlace, own: LocalNetwork): number {
  const isFirst = (needsRelay(place, own) || needsWitnesses(place, own)) && !bothHaveIpv6(place, own);
  return directHeadStartMs(place, own) + (isFirst ? 0 : PUNCH_HEAD_START_MS);
}

/**
 * True if one node's external port varies and the other node is behind a NAT. Then random ports are needed, and
 * observations of several helpers.
 */
export function needsWitnesses({ natType }: NodePlace, { mapping }: LocalNetwork): boolean {
  if (mapping() === 'open') return false;
  return (natType === SYMMETRIC) !== (mapping() === 'symmetric');
}
