/** Connects to the helpers of a node. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeAt } from '../node-requests.ts';
import { attemptError, type NodePlace, race, UNHELPED } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import type { Connection } from '../transport/types.ts';

/** After the first helper is connected, how long to wait for the rest, milliseconds. */
export const REMAINING_HELPERS_MS = 500;
/** Maximum number of helpers to contact. */
export const MAX_CONTACTED_HELPERS = 3;

type HelperPool = Pick<PeerTable, 'connect' | 'nodeKey'>;

/**
 * The helpers of a node, except that node and this one: if this node were its helper, they would already be connected.
 */
export function usableHelpers({ helpers, nodeKey }: NodePlace, own: Uint8Array): NodeAt[] {
  const isOther = (helper: NodeAt): boolean => ![nodeKey, own].some((key) => equalBytes(helper.nodeKey, key));
  return helpers.filter(isOther).slice(0, MAX_CONTACTED_HELPERS);
}

/**
 * Connects to the helpers of a node, and yields each when its connection is open. Returning early cancels the pending
 * dials.
 * @throws SvcError `connect_failed` at the end if none could be reached, or the signal's reason
 */
export async function* reachableHelpers(
  place: NodePlace,
  pool: HelperPool,
  signal: AbortSignal,
): AsyncGenerator<NodeAt, void, void> {
  const enough = new AbortController();
  const given = AbortSignal.any([signal, enough.signal]);
  const dials = new Set<Promise<DialResult>>();
  for (const helper of usableHelpers(place, pool.nodeKey)) {
    const there = { nodeKey: helper.nodeKey, addresses: [helper.address], ...UNHELPED };
    const dial: Promise<DialResult> = pool.connect(there, given).then(
      () => ({ dial, helper, error: null }),
      (error: unknown) => ({ dial, helper: null, error }),
    );
    dials.add(dial);
  }
  let cause: unknown;
  let isReached = false;
  try {
    while (dials.size > 0) {
      const { dial, helper, error } = await abortable(Promise.race(dials), signal);
      dials.delete(dial);
      cause = error;
      if (helper === null) continue;
      isReached = true;
      yield helper;
    }
  } finally {
    enough.abort();
  }
  if (signal.aborted) throw abortError(signal);
  if (!isReached) throw new SvcError('connect_failed', { message: 'Cannot reach any helper of the node.', cause });
}

interface DialResult {
  readonly dial: Promise<DialResult>;
  /** Null if it could not be reached. */
  readonly helper: NodeAt | null;
  readonly error: unknown;
}

/**
 * All reachable helpers of a node, in the order in which they connected. An unreachable one delays the result by at
 * most `REMAINING_HELPERS_MS`.
 * @throws SvcError as `reachableHelpers`
 */
export async function allReachableHelpers(
  place: NodePlace,
  clock: Clock,
  pool: HelperPool,
  signal: AbortSignal,
): Promise<NodeAt[]> {
  const reached: NodeAt[] = [];
  const isLate = new AbortController();
  const given = AbortSignal.any([signal, isLate.signal]);
  let timer: Timer | undefined;
  try {
    for await (const helper of reachableHelpers(place, pool, given)) {
      timer ??= clock.after(REMAINING_HELPERS_MS, () => isLate.abort());
      reached.push(helper);
    }
  } catch (error) {
    if (reached.length === 0 || signal.aborted) throw error;
  } finally {
    timer?.cancel();
  }
  return reached;
}

/* Reaches a node through its helpers: the next helper is used if one fails or does not answer. */

/** How long a helper may be silent before the next one is used too, milliseconds. */
export const NEXT_HELPER_DELAY_MS = 1_000;

interface HelperAttempts {
  readonly ask: (helper: NodeAt, signal: AbortSignal) => Promise<Connection>;
  /** True if no further helper should be used, because one has answered. */
  readonly isDecided?: () => boolean;
}

/**
 * Tries the helpers of a node, in the order in which they connect, until one leads to the node.
 * @throws SvcError `attemptError` of all failures, or the signal's reason
 */
export async function tryHelpers(
  place: NodePlace,
  { ask, isDecided = () => false }: HelperAttempts,
  clock: Clock,
  pool: HelperPool,
  signal: AbortSignal,
): Promise<Connection> {
  const failures: unknown[] = [];
  const over = new AbortController();
  const helpers = reachableHelpers(place, pool, AbortSignal.any([signal, over.signal]));
  const runners = usableHelpers(place, pool.nodeKey).map((_, i) => ({
    afterMs: i * NEXT_HELPER_DELAY_MS,
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
    throw signal.aborted ? error : attemptError(failures);
  } finally {
    over.abort();
  }
}

/* Observations of several helpers, required before sending to random ports of a host. */

/**
 * Waits for all helpers, but after the first answer for at most `REMAINING_HELPERS_MS`, so that a silent helper does not
 * delay the dial.
 * @param answers resolve to true for an answer and to false for a failure; they never reject
 */
export async function waitForWitnesses(answers: readonly Promise<boolean>[], clock: Clock): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  let timer: Timer | undefined;
  const all = answers.map(async (answer) => {
    if (await answer) timer ??= clock.after(REMAINING_HELPERS_MS, resolve);
  });
  try {
    await Promise.race([late, Promise.all(all)]);
  } finally {
    timer?.cancel();
  }
}
