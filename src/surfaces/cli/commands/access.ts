/** `svc access`: reopens agents after the database lost changes. */
import type { CommandGroup } from '../command-group.ts';

export function accessCommands(svc: CommandGroup): void {
  const access = svc.group('access', 'reopen the agents after the database lost changes', ['svc access confirm']);
  access.call('confirm', 'confirm the access lists, so that other nodes may call the agents again', {
    operation: 'accessConfirm',
    text: ({ was_closed }) => (was_closed ? 'The agents accept calls again.' : 'The agents were not closed.'),
    quiet: () => 'ok',
  });
}
