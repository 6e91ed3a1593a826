/** `svc agents profile`: what an agent says of itself to everyone. */

import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { answerText } from '../publication.ts';
import { repeated } from '../takes.ts';

type Published = AnswerOf<'serviceRegister'>;

/** How it is shown that the network keeps what was published. */
export const PUBLISHED = {
  text: (answer: Published): string => answerText('It', answer),
  quiet: ({ seq }: Published): string => String(seq),
};

/** Adds the commands below `svc agents`. */
export function profileCommands(agents: CommandGroup): void {
  const profile = agents.group('profile', 'what an agent says of itself to everyone', [
    'svc agents profile set aid1… --name "Translator" --brief "40 languages"',
  ]);
  profile.call('set <aid>', 'publish a profile card in place of the one before', {
    examples: ['svc agents profile set aid1… --name "Translator" --skill translate --modality text'],
    takes: {
      '--name <text>': 'display name',
      '--brief <text>': 'one or two sentences',
      '--protocol <name>': repeated('a protocol that it speaks; may be repeated'),
      '--skill <name>': repeated('what it can do; three at most'),
      '--modality <name>': repeated('such as text or audio; may be repeated'),
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
  profile.call('clear <aid>', 'publish an empty card in its place', {
    loses: ({ aid }) => ({
      question: `Clear the profile card of ${aid}?`,
      back: 'What it says is kept nowhere here: write it again with "svc agents profile set". "svc info" shows it now.',
    }),
    operation: 'profileDelete',
    progress: 'Publishing',
    ...PUBLISHED,
  });
}
