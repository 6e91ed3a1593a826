/** `svc origin`: local addresses of remote agents. */
import type { CommandGroup } from '../command-group.ts';

export function originCommands(svc: CommandGroup): void {
  const origin = svc.group('origin', 'local HTTP addresses of remote agents', [
    'svc origin open bob',
    'curl $(svc origin open bob --quiet)/v1/models',
  ]);
  const open = 'open <aid> --access-token <secret> --local-port <port>';
  origin.call('originOpen', open, 'open a local address for an agent', {
    help: { local_port: 'the local port; default: chosen by the system' },
    progress: 'Connecting',
    text: ({ url }) => `${url} now leads to this agent.`,
    remark: ({ id }) => `It stays open across restarts until "svc origin rm ${id}".`,
    quiet: 'url',
  });
  origin.call('originList', 'list', 'list the local addresses of remote agents', {
    table: {
      of: 'origins',
      columns: {
        ID: 'id',
        ADDRESS: 'url',
        AGENT: 'remote_aid',
        SERVED: 'served',
        OPEN: 'active_conns',
        OPENED: 'opened_at',
        STATE: (o) => (o.is_served ? (o.last_error?.message ?? 'serves') : 'its port is in use: open it again'),
      },
      none: 'No local addresses. Open one with "svc origin open <aid>".',
    },
    quiet: ({ origins }) => origins.map(({ url }) => url).join('\n'),
  });
  origin.call('originClose', 'rm <id>', 'close a local address and its connections', {
    text: (_, { id }) => `Closed the local address ${id}.`,
  });
}
