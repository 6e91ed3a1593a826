/** Asks a daemon to update itself, and follows it over its restart. */
import { SvcError } from '../foundation/errors.ts';
import type { Client } from './client.ts';
import type { OutputOf } from './operation.ts';
import type { updateOperations } from './update.ts';

/** Time between two questions how far it is. */
const POLL_MS = 500;
/** An update has to be over this long after it was asked for: it may have to fetch much, and prove itself. */
const FOLLOW_LIMIT_MS = 15 * 60_000;

export type UpdateView = OutputOf<typeof updateOperations.updateStatus>;

/** What may come instead of an answer while the daemon is stopped and started again, also by way of another node. */
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
 * Has the newest release put in place where there is one, and waits for the end of it.
 * @returns how it stands then; `managed: false` or a warning says that nothing was tried
 * @throws SvcError `timeout`, and what the daemon says
 */
export async function updateAndFollow(client: Client<typeof updateOperations>, pollMs = POLL_MS): Promise<UpdateView> {
  const before = await client.updateStatus({ check: true });
  if (!before.managed || !before.update_available || before.warning !== undefined) return before;
  await client.updateApply();
  const end = Date.now() + FOLLOW_LIMIT_MS;
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
    if (Date.now() > end) throw new SvcError('timeout', { message: 'The update did not come to an end.' });
  }
}
