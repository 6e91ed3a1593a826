/** Which helpers of a node can be asked now. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { ConnectionPool } from '../links/connection-pool.ts';
import { type NodePlace, UNHELPED } from '../links/dial.ts';
import type { NodeAt } from '../node-requests.ts';

/** Where one helper is reached, the others are waited for so long: milliseconds. */
export const OTHER_HELPERS_MS = 500;
/** Helpers of a node that are asked. */
export const MAX_ASKED_HELPERS = 3;

interface ReachableHelpersDependencies {
  readonly clock: Clock;
  readonly pool: Pick<ConnectionPool, 'connect' | 'nodeKey'>;
}

/** The helpers of a node that are not that node or this one: a connection to us would stand already. */
export function othersHelping({ helpers, nodeKey }: NodePlace, own: Uint8Array): NodeAt[] {
  const isOther = (helper: NodeAt): boolean => ![nodeKey, own].some((key) => equalBytes(helper.nodeKey, key));
  return helpers.filter(isOther).slice(0, MAX_ASKED_HELPERS);
}

/**
 * The helpers of a node that a connection to stands or can be made: who is reached first comes first, and a dead one
 * holds up nobody for long.
 * @throws SvcError `connect_failed` where none is reached, or the signal's reason
 */
export async function reachableHelpers(
  place: NodePlace,
  { clock, pool }: ReachableHelpersDependencies,
  signal: AbortSignal,
): Promise<NodeAt[]> {
  const reached: NodeAt[] = [];
  const dials = othersHelping(place, pool.nodeKey).map(async (helper) => {
    await pool.connect({ nodeKey: helper.nodeKey, addresses: [helper.address], ...UNHELPED }, signal);
    reached.push(helper);
  });
  try {
    await abortable(Promise.any(dials), signal);
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new SvcError('connect_failed', { message: 'No helper of the node is reached.', cause });
  }
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(OTHER_HELPERS_MS, resolve);
  await Promise.race([isOver, Promise.allSettled(dials)]);
  timer.cancel();
  return [...reached];
}
