/** `svc card` and `svc agents card`: the cards of agents for programs of other protocols. */

import { relativeTime } from '../../../foundation/plain-words.ts';
import type { CommandGroup } from '../command-group.ts';
import { foundCard } from '../find-card.ts';
import { leftOutText } from '../left-out.ts';
import { formatFields } from '../text.ts';

/** A text of a card, where it is one. */
function said(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function cardCommands(svc: CommandGroup): void {
  svc.call('card <aid>', 'the card for which an agent vouches (A2A, MCP), verified', {
    examples: ['svc card bob', 'svc card bob --json'],
    takes: { '--local-aid <aid>': 'the agent that asks; may be left out where there is only one' },
    operation: 'card',
    progress: 'Looking for the card',
    text: ({ aid, kind, card, signed_at, expires_at, is_current }) =>
      formatFields({
        aid,
        kind,
        name: said(card['name']),
        description: said(card['description']),
        signed: relativeTime(signed_at, Date.now()),
        expires: expires_at === null ? undefined : relativeTime(expires_at, Date.now()),
        state: is_current ? 'verified' : 'verified, as it was seen last: the agent could not be asked',
      }),
    quiet: ({ object_id }) => object_id,
  });
}

/** Adds the commands below `svc agents`. */
export function ownCardCommands(agents: CommandGroup): void {
  const card = agents.group('card', 'the signed card of an agent here (A2A, MCP)', [
    'svc agents card set aid1… http://127.0.0.1:8080',
  ]);
  card.run('set <aid> <from>', 'take over the card of a service, or of a file, signed as this agent', {
    examples: ['svc agents card set aid1… http://127.0.0.1:8080', 'svc agents card set aid1… ./agent-card.json'],
    progress: 'Signing and publishing',
    run: async ({ client }, { aid, from }) => client.cardSet({ aid, card: await foundCard(from) }),
    text: ({ kind, object_id, left_out }) =>
      `The ${kind} card is signed and named by the profile, as object ${object_id}.\n${leftOutText(left_out)}`.trimEnd(),
    quiet: ({ object_id }) => object_id,
  });
  card.call('get <aid>', 'show the signed card of an agent here', {
    operation: 'cardGet',
    text: ({ card: document }) => JSON.stringify(document, null, 2),
    quiet: ({ object_id }) => object_id,
  });
  card.call('del <aid>', 'let go of the card of an agent here', {
    loses: ({ aid }) => ({
      question: `Let go of the card of ${aid}?`,
      back: 'Its service shows it still: "svc agents card set" takes it over again.',
    }),
    operation: 'cardDelete',
    text: (_, { aid }) => `The profile of ${aid} names no card any more.`,
    quiet: (_, { aid }) => aid,
  });
}
