/** `svc alias`: your own labels for agents. Every command accepts them in place of AIDs. */
import { SvcError } from '../../../foundation/errors.ts';
import { changeLabels } from '../../../operations/address-book-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatTable, safeLine } from '../text.ts';

type Labels = Readonly<Record<string, string>>;

/**
 * Labels an agent. The address book holds one label per agent, so an earlier label is replaced and reported.
 * @returns the earlier label, or null
 */
export async function setLabel(context: CliContext, aid: string, label: string): Promise<string | null> {
  const earlier: string[] = [];
  await change(context, (aliases) => {
    earlier.splice(0, 1, ...[aliases[aid] ?? []].flat());
    aliases[aid] = label;
  });
  const before = earlier[0] ?? null;
  if (before === null || before === label) return null;
  context.info(`Replaced the label "${before}" of ${aid} with "${label}". An agent has one label.`);
  return before;
}

/** Rejects a label of another agent before anything else is done. @throws SvcError `invalid_request` */
export async function rejectUsedLabel({ client }: CliContext, label: string): Promise<void> {
  const { aliases } = await client.addressBookGet();
  const wanted = label.trim().toLowerCase();
  const taken = Object.entries(aliases).find(([, one]) => one.toLowerCase() === wanted);
  if (taken === undefined) return;
  throw new SvcError('invalid_request', {
    message: `"${label}" is the label of ${taken[0]}. Choose another label, or delete that one with "svc alias del".`,
  });
}

async function change({ client }: CliContext, edit: (aliases: Record<string, string>) => void): Promise<void> {
  await changeLabels(client, (labels) => {
    const changed = { ...labels };
    edit(changed);
    return changed;
  });
}

/** Labels and AIDs in alphabetical order. */
function rowsOf(aliases: Labels): [label: string, aid: string][] {
  const sorted = Object.entries(aliases).sort(([, a], [, b]) => a.localeCompare(b));
  return sorted.map(([aid, label]) => [label, aid]);
}

export function aliasCommands(svc: CommandGroup): void {
  const alias = svc.group('alias', 'your own labels for agents', ['svc alias add bob aid1… && svc get bob /health']);
  alias.run('add <label> <aid>', 'label an agent; replaces an earlier label of the same agent', {
    examples: ['svc alias add bob aid1… && svc get bob /health'],
    run: async (context, { label, aid: text }) => {
      const aid = await context.aid(text);
      return { ok: true, label, aid, replaced: await setLabel(context, aid, label) };
    },
    aids: 'whole',
    text: ({ label, aid }) => `${label} is ${aid}.`,
    quiet: ({ aid }) => aid,
  });
  alias.run('del <label>', 'delete a label', {
    run: async (context, { label }) => {
      const wanted = label.trim().toLowerCase();
      await change(context, (aliases) => {
        const aid = Object.keys(aliases).find((key) => aliases[key]?.toLowerCase() === wanted);
        if (aid === undefined) throw new SvcError('not_found', { message: `No agent has the label "${label}".` });
        delete aliases[aid];
      });
      return { ok: true, label };
    },
    text: ({ label }) => `Deleted the label ${label}.`,
    quiet: ({ label }) => label,
  });
  alias.call('list', 'list the labels', {
    operation: 'addressBookGet',
    json: ({ aliases }) => ({ aliases }),
    text: ({ aliases }) =>
      formatTable(['LABEL', 'AID'], rowsOf(aliases), 'No labels yet. Add one with "svc alias add".'),
    quiet: ({ aliases }) =>
      rowsOf(aliases)
        .map(([label]) => safeLine(label))
        .join('\n'),
  });
}
