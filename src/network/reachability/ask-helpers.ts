/** Reaching a node by one of its helpers: one after the other, where one fails or says nothing. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeAt } from '../node-requests.ts';
import { type NodePlace, race, whyNot } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import type { Connection } from '../transport/types.ts';
import { othersHelping, reachableHelpers } from './reachable-helpers.ts';

/** Where a helper says nothing for so long, the next one is asked too: milliseconds. */
export const SILENT_HELPER_MS = 1_000;

interface Asking {
  readonly ask: (helper: NodeAt, signal: AbortSignal) => Promise<Connection>;
  /** True where no further helper is to be asked, as one has answered. */
  readonly isDecided?: () => boolean;
}

interface AskHelpersDependencies {
  readonly clock: Clock;
  readonly pool: Pick<PeerTable, 'connect' | 'nodeKey'>;
  readonly signal: AbortSignal;
}

/**
 * Asks the helpers of a node in the order in which they are reached, until one of them leads there.
 * @throws SvcError as `whyNot` of what each of them failed with, or the signal's reason
 */
export async function askHelpers(
  place: NodePlace,
  { ask, isDecided = () => false }: Asking,
  { clock, pool, signal }: AskHelpersDependencies,
): Promise<Connection> {
  const failures: unknown[] = [];
  const over = new AbortController();
  const helpers = reachableHelpers(place, { pool }, AbortSignal.any([signal, over.signal]));
  const runners = othersHelping(place, pool.nodeKey).map((_, i) => ({
    afterMs: i * SILENT_HELPER_MS,
    run: async (given: AbortSignal): Promise<Connection> => {
      if (isDecided()) throw new SvcError('cancelled');
      try {
        const { value: helper } = await helpers.next();
        if (helper === undefined) throw new SvcError('connect_failed');
        return await ask(helper, given);
      } catch (error) {
        failures.push(error);
        throw error;
      }
    },
  }));
  try {
    const options = { hurry: 'when one has failed', drop: (late: Connection) => late.close() } as const;
    return await race(runners, options, { clock, signal });
  } catch (error) {
    throw signal.aborted ? error : whyNot(failures);
  } finally {
    over.abort();
  }
}
