/** Which helpers of a node can be asked now. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeAt } from '../node-requests.ts';
import { type NodePlace, UNHELPED } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';

/** Where one helper is reached, the others are waited for so long: milliseconds. */
export const OTHER_HELPERS_MS = 500;
/** Helpers of a node that are asked. */
export const MAX_ASKED_HELPERS = 3;

interface ReachableHelpersDependencies {
  readonly clock: Clock;
  readonly pool: Pick<PeerTable, 'connect' | 'nodeKey'>;
}

/** The helpers of a node that are not that node or this one: a connection to us would stand already. */
export function othersHelping({ helpers, nodeKey }: NodePlace, own: Uint8Array): NodeAt[] {
  const isOther = (helper: NodeAt): boolean => ![nodeKey, own].some((key) => equalBytes(helper.nodeKey, key));
  return helpers.filter(isOther).slice(0, MAX_ASKED_HELPERS);
}

/**
 * The helpers of a node, each as soon as a connection to it stands. Who needs no more of them stops, and what is still
 * dialled is given up.
 * @throws SvcError `connect_failed` at the end, where none is reached, or the signal's reason
 */
export async function* reachableHelpers(
  place: NodePlace,
  { pool }: Pick<ReachableHelpersDependencies, 'pool'>,
  signal: AbortSignal,
): AsyncGenerator<NodeAt, void, void> {
  const enough = new AbortController();
  const given = AbortSignal.any([signal, enough.signal]);
  const dials = new Set<Promise<Dialled>>();
  for (const helper of othersHelping(place, pool.nodeKey)) {
    const there = { nodeKey: helper.nodeKey, addresses: [helper.address], ...UNHELPED };
    const dial: Promise<Dialled> = pool.connect(there, given).then(
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
  if (!isReached) throw new SvcError('connect_failed', { message: 'No helper of the node is reached.', cause });
}

interface Dialled {
  readonly dial: Promise<Dialled>;
  /** Null where it is not reached. */
  readonly helper: NodeAt | null;
  readonly error: unknown;
}

/**
 * All helpers of a node that are reached, who is reached first comes first, and a dead one holds up nobody for long.
 * @throws SvcError as `reachableHelpers`
 */
export async function allReachableHelpers(
  place: NodePlace,
  { clock, pool }: ReachableHelpersDependencies,
  signal: AbortSignal,
): Promise<NodeAt[]> {
  const reached: NodeAt[] = [];
  const isLate = new AbortController();
  const given = AbortSignal.any([signal, isLate.signal]);
  let timer: Timer | undefined;
  try {
    for await (const helper of reachableHelpers(place, { pool }, given)) {
      timer ??= clock.after(OTHER_HELPERS_MS, () => isLate.abort());
      reached.push(helper);
    }
  } catch (error) {
    if (reached.length === 0 || signal.aborted) throw error;
  } finally {
    timer?.cancel();
  }
  return reached;
}
