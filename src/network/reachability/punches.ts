/**
 * The punched way to a node: its helpers introduce us, and both nodes open their routers towards each other. While a relay
 * carries, the peer tries this way again, because it may lead there later.
 */
import type { Clock } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { NodeAt } from '../node-requests.ts';
import { type Dialer, NodeAbsent, type NodePlace, race } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import type { Connection } from '../transport/types.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from './client-pool.ts';
import { commonIpv6Address } from './interface-addresses.ts';
import type { PunchInitiator, PunchOptions } from './punch-initiator.ts';
import { allReachableHelpers, tryHelpers, usableHelpers } from './reachable-helpers.ts';
import { needsWitnesses, type OwnSide, punchDelayMs, RELAY_HEAD_START_MS } from './relayed.ts';

/** Time to punch a way, milliseconds: its helper is reached and asked twice, and a round of random ports may be needed. */
export const PUNCH_TIMEOUT_MS = 10_000;
/** Head start of IPv6 over IPv4 where both nodes have it, milliseconds. */
export const IPV6_HEAD_START_MS = 300;
/** From the end of a round to the next, after the first rounds, milliseconds. */
export const PUNCH_AGAIN_MS: number = 10 * 60_000;
/** From the hello over a relay to the first random ports, which would hold up what the node was called for, milliseconds. */
export const IMPROVE_AFTER_MS = 1_000;

interface PunchedParts {
  readonly clock: Clock;
  readonly pool: Pick<PeerTable, 'connect' | 'current' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<PunchInitiator, 'punch' | 'punchOverIpv6'>;
}

type Punching = PunchOptions & { readonly signal: AbortSignal };

export function punched(parts: PunchedParts): Dialer {
  const { pool, own } = parts;
  return {
    kind: 'punched',
    timeoutMs: PUNCH_TIMEOUT_MS,
    delayMs: (place, relays) => punchDelayMs(place, own, relays),
    mayLead: (place) => usableHelpers(place, pool.nodeKey).length > 0,
    dial: (place, signal) => punch(place, signal, parts),
    rounds: (place, isUnderWay) => {
      // If random ports are not needed, or are being tried, the dial was the first round.
      const isBegun = isUnderWay || !needsWitnesses(place, own);
      return {
        firstMs: isBegun ? BIRTHDAY_SPACING_MS : IMPROVE_AFTER_MS,
        soon: isBegun ? BIRTHDAY_ROUNDS - 1 : BIRTHDAY_ROUNDS,
        periodMs: BIRTHDAY_SPACING_MS,
        laterMs: PUNCH_AGAIN_MS,
      };
    },
  };
}

async function punch(place: NodePlace, signal: AbortSignal, parts: PunchedParts): Promise<Connection> {
  const { clock, pool, own } = parts;
  const { nodeKey } = place;
  const isWanted = (): boolean => {
    const current = pool.current(nodeKey);
    return current === null || isRelayed(current.connection.path.kind);
  };
  const options = { signal, isWanted };
  if (needsWitnesses(place, own)) {
    const helpers = await allReachableHelpers(place, parts.clock, parts.pool, signal);
    return await introduced(place, helpers, options, parts);
  }
  let isDecided = false;
  const answered = (): void => {
    isDecided = true;
  };
  const ask = async (helper: NodeAt, given: AbortSignal): Promise<Connection> => {
    try {
      return await introduced(place, [helper], { ...options, signal: given, answered }, parts);
    } catch (error) {
      // Another helper changes nothing but that.
      isDecided ||= !(error instanceof NodeAbsent);
      throw error;
    }
  };
  return await tryHelpers(place, { ask, isDecided: () => isDecided }, clock, pool, signal);
}

/** Over IPv6 first where both nodes have it. Random ports wait longer for that than one packet does. */
async function introduced(
  place: NodePlace,
  helpers: readonly NodeAt[],
  options: Punching,
  parts: PunchedParts,
): Promise<Connection> {
  const { clock, caller, own } = parts;
  const { nodeKey, addresses } = place;
  const at = commonIpv6Address(addresses, own.interfaces());
  const [first] = helpers;
  if (at === null || first === undefined) return await caller.punch(nodeKey, helpers, options);
  const runners = [
    {
      afterMs: 0,
      run: (signal: AbortSignal) => caller.punchOverIpv6(nodeKey, first, at, { ...options, signal }),
    },
    {
      afterMs: needsWitnesses(place, own) ? RELAY_HEAD_START_MS : IPV6_HEAD_START_MS,
      run: (signal: AbortSignal) => caller.punch(nodeKey, helpers, { ...options, signal }),
    },
  ];
  const drop = (late: Connection): void => late.close();
  return await race(runners, { hurry: 'when one has failed', drop }, { clock, signal: options.signal });
}
