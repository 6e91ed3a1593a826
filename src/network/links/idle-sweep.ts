/** Closes connections that nobody has used for a while. */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type Repeating } from '../../foundation/repeat.ts';
import type { NodeSession } from './node-session.ts';

/** A connection without streams is closed after this long, milliseconds. */
export const IDLE_MS = 5 * 60_000;
/** One that another has replaced, after this long. */
export const SPARE_IDLE_MS = 5_000;
const SWEEP_MS = 5_000;

/**
 * Begins to look every few seconds.
 * @param sessions all connections
 */
export function sweepIdle(
  sessions: () => Iterable<NodeSession>,
  isCurrent: (session: NodeSession) => boolean,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Repeating {
  const onError = (error: unknown): void => log.warn({ error }, 'idle connections could not be closed');
  return every(clock, { periodMs: SWEEP_MS, onError }, () => {
    for (const session of [...sessions()])
      if (session.idleMs >= (isCurrent(session) ? IDLE_MS : SPARE_IDLE_MS)) session.close();
  });
}
