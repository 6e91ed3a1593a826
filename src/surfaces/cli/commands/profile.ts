/** `svc agents profile`: the public profile of an agent. */

import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { repeatable } from '../options.ts';
import { publishResultText } from '../publication.ts';

type Published = AnswerOf<'serviceRegister'>;

/** Output after publication. */
export const PUBLISHED_OUTPUT = {
  text: (answer: Published): string => publishResultText('the record', answer),
  quiet: ({ seq }: Published): string => String(seq),
};

/** Adds the commands below `svc agents`. */
export function profileCommands(agents: CommandGroup): void {
  const profile = agents.group('profile', 'the public profile of an agent', [
    'svc agents profile set aid1… --name "Translator" --brief "40 languages"',
  ]);
  profile.call('set <aid>', 'publish a profile and replace the previous one', {
    examples: ['svc agents profile set aid1… --name "Translator" --skill translate --modality text'],
    options: {
      '--name <text>': 'display name',
      '--brief <text>': 'one or two sentences',
      '--protocol <name>': repeatable('a protocol that it speaks; repeatable'),
      '--skill <name>': repeatable('a skill; repeatable, at most three'),
      '--modality <name>': repeatable('such as text or audio; repeatable'),
    },
    operation: 'profileSet',
    progress: 'Publishing',
    input: ({ protocol: protocols, skill: skills, modality: modalities, ...rest }) => ({
      ...rest,
      protocols,
      skills,
      modalities,
    }),
    ...PUBLISHED_OUTPUT,
  });
  profile.call('clear <aid>', 'publish an empty profile', {
    confirmation: ({ aid }) => ({
      question: `Clear the profile of ${aid}?`,
      consequence:
        'svcd stores no copy. To restore it, use "svc agents profile set"; "svc info" shows the current one.',
    }),
    operation: 'profileDelete',
    progress: 'Publishing',
    ...PUBLISHED_OUTPUT,
  });
}
