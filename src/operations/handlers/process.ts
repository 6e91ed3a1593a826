/** Handlers of the operations on the daemon process. */
import type { Updater } from '../../capabilities/update/updater.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { RecentLog } from '../../foundation/recent-log.ts';
import type { CallContext, Handlers } from '../operation.ts';
import { LOG_LINES, type processOperations, type updateOperations } from '../process.ts';
import { timeOrNull } from './values.ts';

// Handlers of the update operations.

const UNMANAGED =
  'svcd does not run as a system service, so it cannot update itself. Install the new version by hand and restart svcd.';

function view(updater: Updater) {
  const { currentVersion, latestVersion, updateAvailable, state, lastCheckAt, lastError, managed } = updater.status();
  return {
    current_version: currentVersion,
    latest_version: latestVersion,
    update_available: updateAvailable,
    state,
    last_check_at: timeOrNull(lastCheckAt),
    last_error: lastError || undefined,
    managed,
    warning: updater.disabled || undefined,
  };
}

export function updateHandlers({ updater }: { readonly updater: Updater }): Handlers<typeof updateOperations> {
  return {
    updateStatus: async ({ check }) => {
      if (check === true) await updater.check();
      return view(updater);
    },
    updateApply: () => {
      updater.apply();
      if (updater.disabled !== '') return { message: 'There is no update to install.', warning: updater.disabled };
      if (!updater.status().managed)
        return { message: 'Checking the registry for a newer release.', warning: UNMANAGED };
      return { message: 'Checking for a newer release and installing it. GET /update/status shows the result.' };
    },
  };
}

export interface ProcessHandlerDependencies {
  readonly log: RecentLog;
  /** The process ID. */
  readonly pid: number;
  /** Stops the process cleanly. */
  readonly stop: (reason: string) => void;
  /** Restarts the process; null if no service manager runs it. */
  readonly restart: (() => void) | null;
}

/** Waits until the response was sent: stopping would interrupt it. */
function afterwards(context: CallContext, act: () => void): void {
  if (context.onAnswered === undefined) act();
  else context.onAnswered(act);
}

export function processHandlers({
  log,
  pid,
  stop,
  restart,
}: ProcessHandlerDependencies): Handlers<typeof processOperations> {
  return {
    nodeLog: ({ level = 'debug', limit = LOG_LINES, after_seq = 0 }) => ({
      lines: log.read(level, limit, after_seq),
      last_seq: log.lastSeq,
    }),
    nodeStop: (_input, context) => {
      // A web page must not stop the daemon that serves it.
      if (context.fromPage === true)
        throw new SvcError('forbidden_origin', { message: 'A web page cannot stop the daemon. Use "svc stop".' });
      if (restart !== null)
        throw new SvcError('wrong_state', {
          message: 'svcd runs as a system service, which would restart it. Use "svcd service stop".',
        });
      afterwards(context, () => stop('asked'));
      return { pid };
    },
    nodeRestart: (_input, context) => {
      if (restart === null)
        throw new SvcError('wrong_state', {
          message: 'svcd was started by hand, so it cannot restart itself. Stop it with "svc stop" and start it again.',
        });
      afterwards(context, restart);
      return { pid };
    },
  };
}
