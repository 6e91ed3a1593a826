/** `svc card` and `svc agents card`: cards of agents for programs that speak other protocols. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { CommandGroup } from '../command-group.ts';
import { findCard, missingInterfacesText } from '../find-card.ts';
import { formatFields } from '../text.ts';

/** A text member of a card. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function cardCommands(svc: CommandGroup): void {
  svc.call('card', 'card <aid>', 'show the verified card of an agent (A2A, MCP)', {
    examples: ['svc card bob', 'svc card bob --json'],
    progress: 'Fetching the card',
    text: ({ aid, kind, card, signed_at, expires_at, is_current }) =>
      formatFields({
        aid,
        kind,
        name: textOf(card['name']),
        description: textOf(card['description']),
        signed: relativeTime(signed_at, Date.now()),
        expires: expires_at === null ? undefined : relativeTime(expires_at, Date.now()),
        state: is_current ? 'verified' : 'verified, but possibly outdated: the agent did not respond',
      }),
    quiet: 'object_id',
  });
}

/** Adds the commands below `svc agents`. */
export function ownCardCommands(agents: CommandGroup): void {
  const card = agents
    .group('card', 'the signed card of a local agent (A2A, MCP)', ['svc agents card set http://127.0.0.1:8080'])
    .acting('<aid>');
  card.run('set', 'sign the card of a service or file as this agent and publish it', {
    options: { '<from>': 'a URL or a file' },
    examples: ['svc agents card set http://127.0.0.1:8080', 'svc agents card set ./agent-card.json'],
    progress: 'Signing and publishing',
    run: async ({ client }, { aid, from }) => client.cardSet({ aid, card: await findCard(from) }),
    text: ({ kind, object_id, left_out }) =>
      `The ${kind} card is signed and published as object ${object_id}.\n${missingInterfacesText(left_out)}`.trimEnd(),
    quiet: ({ object_id }) => object_id,
  });
  card.call('cardGet', 'get', 'show the signed card of a local agent', {
    text: ({ card: document }) => JSON.stringify(document, null, 2),
    quiet: 'object_id',
  });
  card.call('cardDelete', 'rm', 'remove the card of a local agent', {
    confirmation: ({ aid }) => ({
      question: `Remove the card of ${aid}?`,
      consequence: 'Its service still has it: "svc agents card set" signs it again.',
    }),
    text: (_, { aid }) => `The profile of ${aid} no longer names a card.`,
  });
}
