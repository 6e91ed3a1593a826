/** Closes connections that nobody has used for a while. */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodeSession } from './node-session.ts';

/** A connection without streams is closed after this long, milliseconds, unless somebody keeps it. */
export const IDLE_MS = 5 * 60_000;
/** One that another has replaced, after this long. */
export const SPARE_IDLE_MS = 5_000;
const SWEEP_MS = 5_000;

/** How a connection stands: in use, in use and to be kept without streams too, or replaced by another. */
type Standing = 'current' | 'kept' | 'spare';
const LIMIT_MS: Readonly<Record<Standing, number>> = {
  current: IDLE_MS,
  kept: Number.POSITIVE_INFINITY,
  spare: SPARE_IDLE_MS,
};

/**
 * Begins to look every few seconds.
 * @param sessions all connections
 */
export function sweepIdle(
  sessions: () => Iterable<NodeSession>,
  standing: (session: NodeSession) => Standing,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): RepeatingTask {
  const onError = (error: unknown): void => log.warn({ error }, 'idle connections could not be closed');
  return every(clock, { periodMs: SWEEP_MS, onError }, () => {
    for (const session of [...sessions()]) if (session.idleMs >= LIMIT_MS[standing(session)]) session.close();
  });
}
