/** The way to a node by a relay: what is left where nothing else leads there, and sooner there than a punched one. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { ConnectionPool } from '../links/connection-pool.ts';
import { type Dialler, type NodePlace, whyNot } from '../links/dial.ts';
import { race } from '../links/race.ts';
import type { QuicConnection } from '../quic/types.ts';
import type { Caller } from './caller.ts';
import { type OwnSide, relayDelayMs } from './head-starts.ts';
import { othersHelping, reachableHelpers } from './reachable-helpers.ts';

/** Time to reach a node by a relay of any of its helpers, milliseconds. */
export const RELAY_TIMEOUT_MS = 10_000;
/** Where a helper says nothing for so long, the next one is asked too: milliseconds. */
export const SILENT_HELPER_MS = 1_000;

interface RelayedDependencies {
  readonly clock: Clock;
  readonly pool: Pick<ConnectionPool, 'connect' | 'nodeKey'>;
  readonly own: OwnSide;
  readonly caller: Pick<Caller, 'relay'>;
  /** Told where a relay leads to a node, so that a better way is looked for. */
  readonly reached: (place: NodePlace) => void;
}

/** Dials by a relay: the first of the node's helpers that is reached, answers and has room. */
export function relayed({ clock, pool, own, caller, reached }: RelayedDependencies): Dialler {
  return {
    kind: 'relay',
    delayMs: (place) => relayDelayMs(place, own),
    timeoutMs: RELAY_TIMEOUT_MS,
    mayLead: (place) => othersHelping(place, pool.nodeKey).length > 0,
    dial: async (place, signal) => {
      const failures: unknown[] = [];
      const over = new AbortController();
      const helpers = reachableHelpers(place, { pool }, AbortSignal.any([signal, over.signal]));
      const runners = othersHelping(place, pool.nodeKey).map((_, i) => ({
        afterMs: i * SILENT_HELPER_MS,
        run: async (given: AbortSignal): Promise<QuicConnection> => {
          try {
            const { value: helper } = await helpers.next();
            if (helper === undefined) throw new SvcError('connect_failed');
            return await caller.relay(place.nodeKey, helper, given);
          } catch (error) {
            failures.push(error);
            throw error;
          }
        },
      }));
      try {
        const options = { hurry: 'when one has failed', drop: (late: QuicConnection) => late.close() } as const;
        const connection = await race(runners, options, { clock, signal });
        reached(place);
        return connection;
      } catch (error) {
        throw signal.aborted ? error : whyNot(failures);
      } finally {
        over.abort();
      }
    },
  };
}
