/** Which helpers of a node can be asked now. */
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeAt } from '../node-requests.ts';
import { type NodePlace, race, UNHELPED, whyNot } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import type { Connection } from '../transport/types.ts';

/** Where one helper is reached, the others are waited for so long: milliseconds. */
export const OTHER_HELPERS_MS = 500;
/** Helpers of a node that are asked. */
export const MAX_ASKED_HELPERS = 3;

/** Connects to helpers. */
type HelperPool = Pick<PeerTable, 'connect' | 'nodeKey'>;

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
  pool: HelperPool,
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

/* Reaching a node by one of its helpers: one after the other, where one fails or says nothing. */

/** Where a helper says nothing for so long, the next one is asked too: milliseconds. */
export const SILENT_HELPER_MS = 1_000;

interface Asking {
  readonly ask: (helper: NodeAt, signal: AbortSignal) => Promise<Connection>;
  /** True where no further helper is to be asked, as one has answered. */
  readonly isDecided?: () => boolean;
}

/**
 * Asks the helpers of a node in the order in which they are reached, until one of them leads there.
 * @throws SvcError as `whyNot` of what each of them failed with, or the signal's reason
 */
export async function askHelpers(
  place: NodePlace,
  { ask, isDecided = () => false }: Asking,
  clock: Clock,
  pool: HelperPool,
  signal: AbortSignal,
): Promise<Connection> {
  const failures: unknown[] = [];
  const over = new AbortController();
  const helpers = reachableHelpers(place, pool, AbortSignal.any([signal, over.signal]));
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

/* The words of several helpers on where a node is, where random ports of its host are to be written to. */

/**
 * Waits for what helpers say: for all of them or, from the first word on, as long as for one that is dialled, so that a
 * silent one holds up nobody.
 * @param words true for each that has said something; none rejects
 */
export async function hearWitnesses(words: readonly Promise<boolean>[], clock: Clock): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  let timer: Timer | undefined;
  const all = words.map(async (word) => {
    if (await word) timer ??= clock.after(OTHER_HELPERS_MS, resolve);
  });
  try {
    await Promise.race([late, Promise.all(all)]);
  } finally {
    timer?.cancel();
  }
}
