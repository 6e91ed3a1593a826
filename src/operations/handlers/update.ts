/** Handlers of the update operations. */
import type { Updater } from '../../capabilities/update/updater.ts';
import type { Handlers } from '../operation.ts';
import type { updateOperations } from '../update.ts';
import { timeOrNull } from './values.ts';

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
