/** `svc agents profile`: what an agent says of itself to everyone. */
import type { Command } from 'commander';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { counted } from '../text.ts';
import { collect } from '../values.ts';

interface ProfileOptions {
  readonly name?: string;
  readonly brief?: string;
  readonly protocol: readonly string[];
  readonly skill: readonly string[];
  readonly modality: readonly string[];
}

/** Texts of a list; none where the list is empty, so that it stays out of the card. */
function listed<K extends string>(key: K, values: readonly string[]): Partial<Record<K, string[]>> {
  return values.length === 0 ? {} : ({ [key]: [...values] } as Partial<Record<K, string[]>>);
}

/** @param agents the command `svc agents` */
export function profileCommands(agents: Command, contextOf: ContextOf): void {
  const profile = agents
    .command('profile')
    .description('what an agent says of itself to everyone')
    .addHelpText('after', examples('svc agents profile set aid1… --name "Translator" --brief "40 languages"'));
  const view = {
    text: (r: { replicas: number }) => `Published, kept by ${counted(r.replicas, 'node')}.`,
    quiet: (r: { seq: number }) => String(r.seq),
  };
  profile
    .command('set <aid>')
    .description('publish a profile card in place of the one before')
    .option('--name <text>', 'display name')
    .option('--brief <text>', 'one or two sentences')
    .option('--protocol <name>', 'a protocol that it speaks; may be repeated', collect, [])
    .option('--skill <name>', 'what it can do; three at most', collect, [])
    .option('--modality <name>', 'such as text or audio; may be repeated', collect, [])
    .addHelpText(
      'after',
      examples('svc agents profile set aid1… --name "Translator" --skill translate --modality text'),
    )
    .action(async (aid: string, options: ProfileOptions, command: Command) => {
      const context = contextOf(command);
      const { name, brief } = options;
      const work = context.client.profileSet({
        aid,
        ...(name === undefined ? {} : { name }),
        ...(brief === undefined ? {} : { brief }),
        ...listed('protocols', options.protocol),
        ...listed('skills', options.skill),
        ...listed('modalities', options.modality),
      });
      context.show(await context.progress('Publishing', work), view);
    });
  profile
    .command('clear <aid>')
    .description('publish an empty card in its place')
    .addHelpText('after', examples('svc agents profile clear aid1…'))
    .action(async (aid: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.progress('Publishing', context.client.profileDelete({ aid })), view);
    });
}
