/** `svc update`: looks for a newer svcd, and has the daemon put it in place. */
import type { Command } from 'commander';
import { type UpdateView, updateAndFollow } from '../../../operations/update-client.ts';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { safeText } from '../text.ts';
import { Unsuccessful } from '../unsuccessful.ts';

const EXAMPLES = examples(
  'svc update             # looks, and says what is there',
  'svc update --confirm   # puts it in place, and waits until it runs',
);

/** How it stands, in words. */
export function updateText(u: UpdateView): string {
  if (u.warning !== undefined) return u.warning;
  const past = u.state === 'rolled_back' ? `The last update was taken back: ${u.last_error}` : (u.last_error ?? '');
  if (u.latest_version === null) return safeText(past === '' ? 'Nobody has looked for a newer svcd yet.' : past);
  if (!u.update_available) return `svcd ${u.current_version} runs; there is no newer one.`;
  const next = u.managed
    ? 'Put it in place with: svc update --confirm'
    : `This svcd does not run as the installed service. Update it with: npm install -g svcd@${u.latest_version}`;
  const lines = [`svcd ${u.latest_version} is out; this is ${u.current_version}.`, past, next];
  return safeText(lines.filter((line) => line !== '').join('\n'));
}

/** What a script wants: the version that could be put in place, or that runs. */
function quietText(u: UpdateView): string {
  return u.latest_version ?? u.current_version;
}

export function updateCommands(program: Command, contextOf: ContextOf): void {
  program
    .command('update')
    .description('look for a newer svcd, and put it in place with --confirm')
    .option('--check', 'only look, even with --confirm')
    .option('--confirm', 'put the newest release in place; the daemon starts anew')
    .addHelpText('after', EXAMPLES)
    .action(async ({ check, confirm }: { check?: boolean; confirm?: boolean }, command: Command) => {
      const context = contextOf(command);
      const { client } = context;
      const apply = confirm === true && check !== true;
      const result = await context.progress(
        apply ? 'Updating' : 'Looking',
        apply ? updateAndFollow(client) : client.updateStatus({ check: true }),
      );
      context.show(result, { text: updateText, quiet: quietText });
      // An update that is still to be had after it was tried was not kept.
      if (apply && (result.state === 'failed' || result.update_available))
        throw new Unsuccessful('Nothing was installed.');
      if (result.state === 'failed') throw new Unsuccessful('It is not known whether there is a newer one.');
    });
}
