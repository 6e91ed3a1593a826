/** `svc alias`: names of your own for agents, usable wherever a command takes an AID. */
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatTable, safeLine } from '../text.ts';

async function change(context: CliContext, edit: (aliases: Record<string, string>) => void): Promise<void> {
  const { aliases, favorites } = await context.client.addressBookGet();
  const changed = { ...aliases };
  edit(changed);
  await context.client.addressBookPut({ aliases: changed, favorites });
}

export function aliasCommands(program: Command, contextOf: ContextOf): void {
  const alias = program
    .command('alias')
    .description('your own names for agents')
    .addHelpText('after', examples('svc alias add bob aid1… && svc get bob /health'));
  alias
    .command('add')
    .argument('<label>')
    .argument('<aid>')
    .description('give an agent a name; an earlier one of the same agent is replaced')
    .addHelpText('after', examples('svc alias add bob aid1… && svc get bob /health'))
    .action(async (label: string, text: string, _options, command: Command) => {
      const context = contextOf(command);
      const aid = await context.aid(text);
      await change(context, (aliases) => {
        aliases[aid] = label;
      });
      context.show({ ok: true, label, aid }, { text: () => `${label} is ${aid}.`, quiet: () => aid });
    });
  alias
    .command('del')
    .argument('<label>')
    .description('forget a name')
    .addHelpText('after', examples('svc alias del bob'))
    .action(async (label: string, _options, command: Command) => {
      const context = contextOf(command);
      const wanted = label.trim().toLowerCase();
      await change(context, (aliases) => {
        const aid = Object.keys(aliases).find((key) => aliases[key]?.toLowerCase() === wanted);
        if (aid === undefined) throw new SvcError('not_found', { message: `No agent is called "${label}" here.` });
        delete aliases[aid];
      });
      context.show({ ok: true, label }, { text: () => `${label} is forgotten.`, quiet: () => label });
    });
  alias
    .command('list')
    .description('list the names')
    .addHelpText('after', examples('svc alias list'))
    .action(async (_options, command: Command) => {
      const context = contextOf(command);
      const { aliases } = await context.client.addressBookGet();
      const rows = Object.entries(aliases).map(([aid, label]) => [label, aid]);
      rows.sort(([a = ''], [b = '']) => a.localeCompare(b));
      context.show(
        { aliases },
        {
          text: () =>
            rows.length === 0 ? 'No names yet. Give one with "svc alias add".' : formatTable(['LABEL', 'AID'], rows),
          quiet: () => rows.map(([label = '']) => safeLine(label)).join('\n'),
        },
      );
    });
}
