/** `svc origin`: local addresses of remote agents. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { CommandGroup } from '../command-group.ts';
import { accessToken, CALLING_AGENT, integer } from '../options.ts';
import { formatTable } from '../text.ts';

export function originCommands(svc: CommandGroup): void {
  const origin = svc.group('origin', 'local HTTP addresses of remote agents', [
    'svc origin open bob',
    'curl $(svc origin open bob --quiet)/v1/models',
  ]);
  origin.call('open <aid>', 'open a local address for an agent', {
    options: {
      ...CALLING_AGENT,
      '--access-token <secret>': accessToken('access token that the remote agent requires'),
      '--local-port <port>': integer('the local port; default: chosen by the system'),
    },
    operation: 'originOpen',
    progress: 'Connecting',
    text: ({ url }) => `${url} now leads to this agent.`,
    remark: ({ id }) => `It stays open across restarts until "svc origin close ${id}".`,
    quiet: ({ url }) => url,
  });
  origin.call('list', 'list the local addresses of remote agents', {
    operation: 'originList',
    text: ({ origins }) =>
      formatTable(
        ['ID', 'ADDRESS', 'AGENT', 'SERVED', 'OPEN', 'OPENED', 'STATE'],
        origins.map((o) => [
          o.id,
          o.url,
          o.remote_aid,
          String(o.served),
          String(o.active_conns),
          relativeTime(o.opened_at, Date.now()),
          o.is_served ? (o.last_error?.message ?? 'serves') : 'its port is in use: open it again',
        ]),
        'No local addresses. Open one with "svc origin open <aid>".',
      ),
    quiet: ({ origins }) => origins.map(({ url }) => url).join('\n'),
  });
  origin.call('close <id>', 'close a local address and its connections', {
    operation: 'originClose',
    text: (_, { id }) => `Closed the local address ${id}.`,
    quiet: (_, { id }) => id,
  });
}
