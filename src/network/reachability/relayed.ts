/** The way to a node by a relay: what is left where nothing else leads there, and sooner there than a punched one. */
import type { Clock } from '../../foundation/clock.ts';
import type { NodeAt } from '../node-requests.ts';
import type { Dialer, NodePlace } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { askHelpers } from './ask-helpers.ts';
import { type OwnSide, relayDelayMs } from './head-starts.ts';
import type { PunchInitiator } from './punch-initiator.ts';
import { othersHelping } from './reachable-helpers.ts';

/** Time to reach a node by a relay of any of its helpers, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;

interface RelayedDependencies {
  readonly clock: Clock;
  readonly pool: Pick<PeerTable, 'connect' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<PunchInitiator, 'relay'>;
  /** Told where a relay leads to a node, so that a better way is looked for. */
  readonly reached: (place: NodePlace) => void;
}

/** Dials by a relay: the first of the node's helpers that is reached, answers and has room. */
export function relayed({ clock, pool, own, caller, reached }: RelayedDependencies): Dialer {
  return {
    kind: 'relay',
    delayMs: (place) => relayDelayMs(place, own),
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => othersHelping(place, pool.nodeKey).length > 0,
    dial: async (place, signal) => {
      const ask = (helper: NodeAt, given: AbortSignal) => caller.relay(place.nodeKey, helper, given);
      const connection = await askHelpers(place, { ask }, { clock, pool, signal });
      reached(place);
      return connection;
    },
  };
}
