/** `svc access`: opens agents that were closed because the database lost changes. */
import type { CommandGroup } from '../command-group.ts';

export function accessCommands(svc: CommandGroup): void {
  const access = svc.group('access', 'open the agents again after the database lost changes', ['svc access confirm']);
  access.call('confirm', 'confirm the access lists: other nodes may call the agents again', {
    operation: 'accessConfirm',
    text: ({ was_closed }) => (was_closed ? 'The agents are open again.' : 'The agents were not closed.'),
    quiet: () => 'ok',
  });
}
