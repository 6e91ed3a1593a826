/** `svc alias`: names of your own for agents, usable wherever a command takes an AID. */
import { SvcError } from '../../../foundation/errors.ts';
import { changeLabels } from '../../../operations/address-book-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatTable, safeLine } from '../text.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Gives an agent a label of the user's own. The address book holds one for each agent: an earlier one is replaced, and that is said.
 * @returns the earlier label; null if there was none
 */
export async function setLabel(context: CliContext, aid: string, label: string): Promise<string | null> {
  const earlier: string[] = [];
  await change(context, (aliases) => {
    earlier.splice(0, 1, ...[aliases[aid] ?? []].flat());
    aliases[aid] = label;
  });
  const before = earlier[0] ?? null;
  if (before === null || before === label) return null;
  context.note(`The label "${before}" of ${aid} is replaced by "${label}": an agent has one label.`);
  return before;
}

/** Refuses a label that another agent has, before anything is done for it. @throws SvcError `invalid_request` */
export async function refuseTakenLabel({ client }: CliContext, label: string): Promise<void> {
  const { aliases } = await client.addressBookGet();
  const wanted = label.trim().toLowerCase();
  const taken = Object.entries(aliases).find(([, one]) => one.toLowerCase() === wanted);
  if (taken === undefined) return;
  throw new SvcError('invalid_request', {
    message: `"${label}" is ${taken[0]} here. Choose another label, or forget that one with "svc alias del".`,
  });
}

async function change({ client }: CliContext, edit: (aliases: Record<string, string>) => void): Promise<void> {
  await changeLabels(client, (labels) => {
    const changed = { ...labels };
    edit(changed);
    return changed;
  });
}

/** Labels with their AIDs, in the order of the alphabet. */
function rowsOf(aliases: Labels): [label: string, aid: string][] {
  const sorted = Object.entries(aliases).sort(([, a], [, b]) => a.localeCompare(b));
  return sorted.map(([aid, label]) => [label, aid]);
}

export function aliasCommands(svc: CommandGroup): void {
  const alias = svc.group('alias', 'your own names for agents', ['svc alias add bob aid1… && svc get bob /health']);
  alias.run('add <label> <aid>', 'give an agent a name; an earlier one of the same agent is replaced', {
    examples: ['svc alias add bob aid1… && svc get bob /health'],
    run: async (context, { label, aid: text }) => {
      const aid = await context.aid(text);
      return { ok: true, label, aid, replaced: await setLabel(context, aid, label) };
    },
    aids: 'whole',
    text: ({ label, aid }) => `${label} is ${aid}.`,
    quiet: ({ aid }) => aid,
  });
  alias.run('del <label>', 'forget a name', {
    run: async (context, { label }) => {
      const wanted = label.trim().toLowerCase();
      await change(context, (aliases) => {
        const aid = Object.keys(aliases).find((key) => aliases[key]?.toLowerCase() === wanted);
        if (aid === undefined) throw new SvcError('not_found', { message: `No agent is called "${label}" here.` });
        delete aliases[aid];
      });
      return { ok: true, label };
    },
    text: ({ label }) => `${label} is forgotten.`,
    quiet: ({ label }) => label,
  });
  alias.call('list', 'list the names', {
    operation: 'addressBookGet',
    json: ({ aliases }) => ({ aliases }),
    text: ({ aliases }) =>
      formatTable(['LABEL', 'AID'], rowsOf(aliases), 'No names yet. Give one with "svc alias add".'),
    quiet: ({ aliases }) =>
      rowsOf(aliases)
        .map(([label]) => safeLine(label))
        .join('\n'),
  });
}
