/** `svc update`: looks for a newer svcd, and has the daemon put it in place. */
import { type UpdateView, updateAndFollow } from '../../../operations/update-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { Typed } from '../takes.ts';
import { safeText } from '../text.ts';

/** How it stands, in words. */
export function updateText(u: UpdateView): string {
  if (u.warning !== undefined) return safeText(u.warning);
  const past = u.state === 'rolled_back' ? `The last update was taken back: ${u.last_error}` : (u.last_error ?? '');
  if (u.latest_version === null) return safeText(past === '' ? 'Nobody has looked for a newer svcd yet.' : past);
  if (!u.update_available) return safeText(`svcd ${u.current_version} runs; there is no newer one.`);
  const next = u.managed
    ? 'Put it in place with: svc update --confirm'
    : 'This svcd does not run as the installed service. Install the new version the way this one was installed, and start it again.';
  const lines = [`svcd ${u.latest_version} is out; this is ${u.current_version}.`, past, next];
  return safeText(lines.filter((line) => line !== '').join('\n'));
}

const TAKES = {
  '--check': 'only look, even with --confirm',
  '--confirm': 'put the newest release in place; the daemon starts anew',
} as const;

function applies({ check, confirm }: Typed<'', typeof TAKES>): boolean {
  return confirm === true && check !== true;
}

export function updateCommands(svc: CommandGroup): void {
  svc.run('update', 'look for a newer svcd, and put it in place with --confirm', {
    examples: [
      'svc update             # looks, and says what is there',
      'svc update --confirm   # puts it in place, and waits until it runs',
    ],
    takes: TAKES,
    run: (context, typed) =>
      applies(typed)
        ? context.progress('Updating', updateAndFollow(context.client))
        : context.progress('Looking', context.client.updateStatus({ check: true })),
    text: updateText,
    // What a script wants: the version that could be put in place, or that runs.
    quiet: (u) => u.latest_version ?? u.current_version,
    fails: ({ state, update_available }, typed) => {
      // An update that is still to be had after it was tried was not kept.
      if (applies(typed)) return state === 'failed' || update_available ? 'Nothing was installed.' : undefined;
      return state === 'failed' ? 'It is not known whether there is a newer one.' : undefined;
    },
  });
}
