/** `svc alias`: your own labels for agents. Every command accepts them in place of AIDs. */
import { SvcError } from '../../../foundation/errors.ts';
import { agentsNamed, foldLabel, type LabelBook, labelsOf } from '../../../foundation/labels.ts';
import { changeBook } from '../../../operations/address-book-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatTable, safeLine } from '../text.ts';

/** The labels without one of them. If it was the shown label of an agent, the next one is shown. */
function without({ aliases, other_labels: others = {} }: LabelBook, aid: string, gone: string): LabelBook {
  const isGone = (label: string): boolean => foldLabel(label) === foldLabel(gone);
  const [label, ...further] = [aliases[aid] ?? [], ...(others[aid] ?? [])].flat().filter((one) => !isGone(one));
  const { [aid]: _shown, ...shown } = aliases;
  const { [aid]: _further, ...rest } = others;
  return {
    aliases: label === undefined ? shown : { ...shown, [aid]: label },
    other_labels: further.length === 0 ? rest : { ...rest, [aid]: further },
  };
}

/**
 * Labels an agent. An earlier label is replaced and reported, unless `also` keeps it.
 * @returns the replaced label, or null
 */
export async function setLabel(context: CliContext, aid: string, label: string, also = false): Promise<string | null> {
  let before: string | null = null;
  await changeBook(context.client, ({ aliases, other_labels: others = {} }) => {
    before = aliases[aid] ?? null;
    // The daemon keeps the further labels of an agent, and a label that is listed twice once.
    if (!also || before === null) return { aliases: { ...aliases, [aid]: label } };
    return { aliases, other_labels: { ...others, [aid]: [...(others[aid] ?? []), label] } };
  });
  if (also || before === null || before === label) return null;
  context.info(`Replaced the label "${String(before)}" of ${aid} with "${label}". Use --also to keep both.`);
  return before;
}

/** Rejects a label of another agent before anything else is done. @throws SvcError `invalid_request` */
export async function rejectUsedLabel({ client }: CliContext, label: string): Promise<void> {
  const [taken] = agentsNamed(label, await client.addressBookGet(), []);
  if (taken === undefined) return;
  throw new SvcError('invalid_request', {
    message: `"${label}" is the label of ${taken}. Choose another label, or delete that one with "svc alias rm".`,
  });
}

/** Labels and AIDs in alphabetical order. */
function rowsOf(book: LabelBook): [label: string, aid: string][] {
  return labelsOf(book).sort(([a], [b]) => a.localeCompare(b));
}

export function aliasCommands(svc: CommandGroup): void {
  const alias = svc.group('alias', 'your own labels for agents', ['svc alias add bob aid1… && svc get bob /health']);
  alias.run('add <label> <aid>', 'label an agent; replaces the earlier label of the same agent', {
    examples: ['svc alias add bob aid1… && svc get bob /health', 'svc alias add robert bob --also'],
    options: { '--also': 'keep the earlier labels of the agent' },
    run: async (context, { label, aid: text, also }) => {
      const aid = await context.aid(text);
      return { ok: true, label, aid, replaced: await setLabel(context, aid, label, also) };
    },
    aids: 'whole',
    text: ({ label, aid }) => `${label} is ${aid}.`,
    quiet: ({ aid }) => aid,
  });
  alias.run('rm <label>', 'delete a label', {
    run: async ({ client }, { label }) => {
      await changeBook(client, (book) => {
        const [aid] = agentsNamed(label, book, []);
        if (aid === undefined)
          throw new SvcError('not_found', {
            message: `No agent has the label "${label}". "svc alias list" shows all labels.`,
          });
        return without(book, aid, label);
      });
      return { ok: true, label };
    },
    text: ({ label }) => `Deleted the label ${label}.`,
    quiet: ({ label }) => label,
  });
  alias.call('addressBookGet', 'list', 'list the labels', {
    json: ({ aliases, other_labels }) => ({ aliases, other_labels }),
    text: (book) => formatTable(['LABEL', 'AID'], rowsOf(book), 'No labels yet. Add one with "svc alias add".'),
    quiet: (book) =>
      rowsOf(book)
        .map(([label]) => safeLine(label))
        .join('\n'),
  });
}
