/** The way to a node by a relay: what is left where nothing else leads there, and sooner there than a punched one. */
import type { ConnectionPool } from '../links/connection-pool.ts';
import { type Dialler, type NodePlace, whyNot } from '../links/dial.ts';
import type { Caller } from './caller.ts';
import { type OwnSide, relayDelayMs } from './head-starts.ts';
import { othersHelping, reachableHelpers } from './reachable-helpers.ts';

/** Time to reach a node by a relay of any of its helpers, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;

interface RelayedDependencies {
  readonly pool: Pick<ConnectionPool, 'connect' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<Caller, 'relay'>;
  /** Told where a relay leads to a node, so that a better way is looked for. */
  readonly reached: (place: NodePlace) => void;
}

/** Dials by a relay: the first of the node's helpers that is reached and has room. */
export function relayed({ pool, own, caller, reached }: RelayedDependencies): Dialler {
  return {
    kind: 'relay',
    delayMs: (place) => relayDelayMs(place, own),
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => othersHelping(place, pool.nodeKey).length > 0,
    dial: async (place, signal) => {
      const failures: unknown[] = [];
      for await (const helper of reachableHelpers(place, { pool }, signal)) {
        try {
          const connection = await caller.relay(place.nodeKey, helper, signal);
          reached(place);
          return connection;
        } catch (error) {
          if (signal.aborted) throw error;
          failures.push(error);
        }
      }
      throw whyNot(failures);
    },
  };
}
