/** Starts an update and follows it across the restart of the daemon. */
import { SvcError } from '../foundation/errors.ts';
import type { Client } from './client.ts';
import type { OutputOf } from './operation.ts';
import type { updateOperations } from './process.ts';

/** Interval between two status requests. */
const POLL_MS = 500;
/** Time limit of an update, which includes downloads and self-tests. */
const FOLLOW_LIMIT_MS = 15 * 60_000;

export type UpdateView = OutputOf<typeof updateOperations.updateStatus>;

/** Errors that are expected while the daemon restarts, also through another node. */
const AWAY: ReadonlySet<string> = new Set([
  'daemon_unreachable',
  'connect_failed',
  'resolve_failed',
  'network_unavailable',
  'clock_wrong',
  'timeout',
  'cancelled',
  'protocol_error',
  'network_not_ready',
]);

/**
 * Installs the newest release, if there is one, and waits for the result.
 * @returns the final state. With `managed: false` or a warning, nothing was tried
 * @throws SvcError `timeout`, and the errors of the daemon
 */
export async function updateAndFollow(client: Client<typeof updateOperations>, pollMs = POLL_MS): Promise<UpdateView> {
  const before = await client.updateStatus({ check: true });
  if (!before.managed || !before.update_available || before.warning !== undefined) return before;
  await client.updateApply();
  const end = performance.now() + FOLLOW_LIMIT_MS;
  for (;;) {
    await new Promise((resolve) => {
      setTimeout(resolve, pollMs);
    });
    try {
      const now = await client.updateStatus();
      if (now.state !== 'checking' && now.state !== 'applying') return now;
    } catch (error) {
      if (!(error instanceof SvcError) || !AWAY.has(error.code)) throw error;
    }
    if (performance.now() > end)
      throw new SvcError('timeout', {
        message: 'The update did not finish in time. Check "svc update status" and the log.',
      });
  }
}
