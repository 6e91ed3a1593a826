/** `svc agents profile`: the public profile of an agent. */

import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { answerText } from '../publication.ts';
import { repeated } from '../takes.ts';

type Published = AnswerOf<'serviceRegister'>;

/** Output after publication. */
export const PUBLISHED = {
  text: (answer: Published): string => answerText('It', answer),
  quiet: ({ seq }: Published): string => String(seq),
};

/** Adds the commands below `svc agents`. */
export function profileCommands(agents: CommandGroup): void {
  const profile = agents.group('profile', 'the public profile of an agent', [
    'svc agents profile set aid1… --name "Translator" --brief "40 languages"',
  ]);
  profile.call('set <aid>', 'publish a profile and replace the previous one', {
    examples: ['svc agents profile set aid1… --name "Translator" --skill translate --modality text'],
    takes: {
      '--name <text>': 'display name',
      '--brief <text>': 'one or two sentences',
      '--protocol <name>': repeated('a protocol that it speaks; repeatable'),
      '--skill <name>': repeated('a skill; repeatable, at most three'),
      '--modality <name>': repeated('such as text or audio; repeatable'),
    },
    operation: 'profileSet',
    progress: 'Publishing',
    input: ({ protocol: protocols, skill: skills, modality: modalities, ...rest }) => ({
      ...rest,
      protocols,
      skills,
      modalities,
    }),
    ...PUBLISHED,
  });
  profile.call('clear <aid>', 'publish an empty profile', {
    loses: ({ aid }) => ({
      question: `Clear the profile of ${aid}?`,
      back: 'svcd stores no copy. To restore it, use "svc agents profile set"; "svc info" shows the present one.',
    }),
    operation: 'profileDelete',
    progress: 'Publishing',
    ...PUBLISHED,
  });
}
