/** The handlers of the operations on updates. */
import type { Updater } from '../../capabilities/update/updater.ts';
import type { Handlers } from '../operation.ts';
import type { updateOperations } from '../update.ts';
import { timeOrNull } from './values.ts';

const UNMANAGED =
  'This svcd does not run as the installed service, so it cannot replace itself: nothing is installed. Install the new version the way this one was installed, and start it again.';

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
      if (updater.disabled !== '') return { message: 'There is nothing to apply.', warning: updater.disabled };
      if (!updater.status().managed)
        return { message: 'The registry is asked for a newer release.', warning: UNMANAGED };
      return { message: 'The newest release is looked for and put in place; GET /update/status says how it ends.' };
    },
  };
}
