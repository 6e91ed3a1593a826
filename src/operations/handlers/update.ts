/** The handlers of the operations on updates. */
import type { Updater } from '../../capabilities/update/updater.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { Handlers, OutputOf } from '../operation.ts';
import type { updateOperations } from '../update.ts';

export interface UpdateHandlerDependencies {
  readonly updater: Updater;
}

const UNMANAGED =
  'This svcd does not run as the installed service, so it cannot replace itself: nothing is installed. Update it the way it was installed, such as with "npm install -g svcd", and start it again.';

function view(updater: Updater): OutputOf<typeof updateOperations.updateStatus> {
  const { currentVersion, latestVersion, updateAvailable, state, lastCheckAt, lastError, managed } = updater.status();
  return {
    current_version: currentVersion,
    latest_version: latestVersion,
    update_available: updateAvailable,
    state,
    last_check_at: lastCheckAt === null ? null : isoTime(lastCheckAt),
    ...(lastError === '' ? {} : { last_error: lastError }),
    managed,
    ...(updater.disabled === '' ? {} : { warning: updater.disabled }),
  };
}

export function updateHandlers({ updater }: UpdateHandlerDependencies): Handlers<typeof updateOperations> {
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
