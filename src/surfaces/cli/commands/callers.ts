/** `svc callers`: callers of an agent, and refused callers. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { formatTable, type WrappedText } from '../text.ts';

// `svc access`: reopens agents after the database lost changes.

export function accessCommands(svc: CommandGroup): void {
  const access = svc.group('access', 'reopen the agents after the database lost changes', ['svc access confirm']);
  access.call('confirm', 'confirm the access lists, so that other nodes may call the agents again', {
    operation: 'accessConfirm',
    text: ({ was_closed }) => (was_closed ? 'The agents accept calls again.' : 'The agents were not closed.'),
    quiet: () => 'ok',
  });
}

type Caller = AnswerOf<'agentCallers'>['callers'][number];

const REFUSAL: Readonly<Record<NonNullable<Caller['last_refusal']>['code'], string>> = {
  access_denied: 'access list',
  rate_limited: 'rate limit',
  no_inbound: 'no service bound',
  tunnels_only: 'tunnels only',
};

const NOW: Readonly<Record<Caller['access'], string>> = { allow: 'yes', deny: 'no', secret: 'with a secret' };

function callersText({ callers, since }: AnswerOf<'agentCallers'>): WrappedText {
  const now = Date.now();
  const rows = callers.map(({ aid, label, calls, tunnels, objects, refused, last_at, last_refusal, access }) => [
    label ?? aid,
    relativeTime(last_at, now),
    calls,
    tunnels,
    objects,
    refused,
    NOW[access],
    last_refusal === null ? '' : `${REFUSAL[last_refusal.code]}, ${relativeTime(last_refusal.at, now)}`,
  ]);
  const head = ['CALLER', 'LAST', 'CALLS', 'TUNNELS', 'FILES', 'REFUSED', 'MAY CALL', 'REASON'];
  return formatTable(head, rows, `No calls since the daemon started, ${relativeTime(since, now)}.`);
}

export function callerCommands(svc: CommandGroup): void {
  svc.acting().call('callers', 'show accepted and refused callers of an agent since the daemon started', {
    examples: ['svc callers', "svc callers --json | jq -r '.callers[] | select(.refused > 0) | .aid'"],
    operation: 'agentCallers',
    watch: true,
    own: true,
    text: callersText,
    quiet: ({ callers }) => callers.map(({ aid }) => aid).join('\n'),
  });
}
