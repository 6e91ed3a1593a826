/**
 * Dials a node by hole punching: its helpers introduce the two nodes, and both open their NATs for each other. While a
 * connection is relayed, the peer repeats this, because it may succeed later.
 */

import type { Clock } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import type { NodeAt } from '../node-requests.ts';
import { type Dialer, NodeAbsent, type NodePlace, race } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { BIRTHDAY_ROUNDS, BIRTHDAY_SPACING_MS } from '../transport/engine-connection.ts';
import type { Connection } from '../transport/types.ts';
import { commonIpv6Address } from './interface-addresses.ts';
import type { PunchInitiator, PunchOptions } from './punch-initiator.ts';
import { allReachableHelpers, tryHelpers, usableHelpers } from './reachable-helpers.ts';
import { type LocalNetwork, needsWitnesses, punchDelayMs, RELAY_HEAD_START_MS } from './relay-dialers.ts';

/** Timeout of a punched dial, milliseconds. It covers two requests to a helper and one round of random ports. */
export const PUNCH_TIMEOUT_MS = 10_000;
/** Head start of IPv6 over IPv4 if both nodes have IPv6, milliseconds. */
export const IPV6_HEAD_START_MS = 300;
/** Pause between rounds after the first rounds, milliseconds. */
export const PUNCH_RETRY_MS: number = 10 * 60_000;
/**
 * Pause from the hello over a relay to the first random ports, milliseconds. They would delay the call that the
 * connection was opened for.
 */
export const IMPROVEMENT_DELAY_MS = 1_000;

interface PunchDialerParts {
  readonly clock: Clock;
  readonly pool: Pick<PeerTable, 'connect' | 'current' | 'nodeKey'>;
  readonly own: LocalNetwork;
  readonly initiator: Pick<PunchInitiator, 'punch' | 'punchOverIpv6'>;
}

type IntroductionOptions = PunchOptions & { readonly signal: AbortSignal };

export function punchDialer(parts: PunchDialerParts): Dialer {
  const { pool, own } = parts;
  return {
    kind: 'punched',
    timeoutMs: PUNCH_TIMEOUT_MS,
    delayMs: (place, relays) => punchDelayMs(place, own, relays),
    mayLead: (place) => usableHelpers(place, pool.nodeKey).length > 0,
    dial: (place, signal) => punch(place, signal, parts),
    rounds: (place, isUnderWay) => {
      // If random ports are not needed, or are being tried, the dial was the first round.
      const hasStarted = isUnderWay || !needsWitnesses(place, own);
      return {
        firstMs: hasStarted ? BIRTHDAY_SPACING_MS : IMPROVEMENT_DELAY_MS,
        soon: hasStarted ? BIRTHDAY_ROUNDS - 1 : BIRTHDAY_ROUNDS,
        periodMs: BIRTHDAY_SPACING_MS,
        laterMs: PUNCH_RETRY_MS,
      };
    },
  };
}

async function punch(place: NodePlace, signal: AbortSignal, parts: PunchDialerParts): Promise<Connection> {
  const { clock, pool, own } = parts;
  const { nodeKey } = place;
  const isWanted = (): boolean => {
    const current = pool.current(nodeKey);
    return current === null || isRelayed(current.connection.path.kind);
  };
  const options = { signal, isWanted };
  if (needsWitnesses(place, own)) {
    const helpers = await allReachableHelpers(place, parts.clock, parts.pool, signal);
    return await punchThroughHelpers(place, helpers, options, parts);
  }
  let isDecided = false;
  const onAnswer = (): void => {
    isDecided = true;
  };
  const ask = async (helper: NodeAt, given: AbortSignal): Promise<Connection> => {
    try {
      return await punchThroughHelpers(place, [helper], { ...options, signal: given, onAnswer }, parts);
    } catch (error) {
      // A node that is absent at one helper may be present at another. All other failures are final.
      isDecided ||= !(error instanceof NodeAbsent);
      throw error;
    }
  };
  return await tryHelpers(place, { ask, isDecided: () => isDecided }, clock, pool, signal);
}

/** Tries IPv6 first if both nodes have it. Random ports start later than a single packet would. */
async function punchThroughHelpers(
  place: NodePlace,
  helpers: readonly NodeAt[],
  options: IntroductionOptions,
  parts: PunchDialerParts,
): Promise<Connection> {
  const { clock, initiator, own } = parts;
  const { nodeKey, addresses } = place;
  const at = commonIpv6Address(addresses, own.interfaces());
  const [first] = helpers;
  if (at === null || first === undefined) return await initiator.punch(nodeKey, helpers, options);
  const runners = [
    {
      afterMs: 0,
      run: (signal: AbortSignal) => initiator.punchOverIpv6(nodeKey, first, at, { ...options, signal }),
    },
    {
      afterMs: needsWitnesses(place, own) ? RELAY_HEAD_START_MS : IPV6_HEAD_START_MS,
      run: (signal: AbortSignal) => initiator.punch(nodeKey, helpers, { ...options, signal }),
    },
  ];
  const drop = (late: Connection): void => late.close();
  return await race(runners, { hurry: 'when one has failed', drop }, { clock, signal: options.signal });
}
