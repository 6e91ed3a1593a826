/** `svc update`: checks for a newer svcd and lets the daemon install it. */
import { type UpdateView, updateAndFollow } from '../../../operations/update-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { ParsedOptions } from '../options.ts';
import { safeText } from '../text.ts';

/** The update state in words. */
export function updateText(u: UpdateView): string {
  if (u.warning !== undefined) return safeText(u.warning);
  const past = u.state === 'rolled_back' ? `The last update was rolled back: ${u.last_error}` : (u.last_error ?? '');
  if (u.latest_version === null) return safeText(past === '' ? 'No check for a newer svcd yet.' : past);
  if (!u.update_available) return safeText(`svcd ${u.current_version} is the newest release.`);
  const next = u.managed
    ? 'Install it with: svc update --confirm'
    : 'This svcd does not run as a system service. Install the new version in the same way as the current one, then start it again.';
  const lines = [`svcd ${u.latest_version} is available. This is ${u.current_version}.`, past, next];
  return safeText(lines.filter((line) => line !== '').join('\n'));
}

const TAKES = {
  '--check': 'only check, even with --confirm',
  '--confirm': 'install the newest release and restart the daemon',
} as const;

function applies({ check, confirm }: ParsedOptions<'', typeof TAKES>): boolean {
  return confirm === true && check !== true;
}

export function updateCommands(svc: CommandGroup): void {
  svc.run('update', 'check for a newer svcd, and install it with --confirm', {
    examples: [
      'svc update             # checks and shows the result',
      'svc update --confirm   # installs it and waits until it runs',
    ],
    options: TAKES,
    run: (context, typed) =>
      applies(typed)
        ? context.progress('Updating', updateAndFollow(context.client))
        : context.progress('Looking', context.client.updateStatus({ check: true })),
    text: updateText,
    // The version for scripts: the available release, or the running one.
    quiet: (u) => u.latest_version ?? u.current_version,
    fails: ({ state, update_available }, typed) => {
      // An update that is still available after an attempt was not installed.
      if (applies(typed)) return state === 'failed' || update_available ? 'Nothing was installed.' : undefined;
      return state === 'failed' ? 'The check failed, so it is unknown whether a newer version exists.' : undefined;
    },
  });
}
