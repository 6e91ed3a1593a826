/** `svc origin`: local addresses that are remote agents. */
import { relativeTime } from '../../../foundation/plain-words.ts';
import type { CommandGroup } from '../command-group.ts';
import { accessToken, integer } from '../takes.ts';
import { formatTable } from '../text.ts';

export function originCommands(svc: CommandGroup): void {
  const origin = svc.group('origin', 'local HTTP addresses that are remote agents', [
    'svc origin open bob',
    'curl $(svc origin open bob --quiet)/v1/models',
  ]);
  origin.call('open <aid>', 'open the local address of an agent, for any program', {
    takes: {
      '--local-aid <aid>': 'the agent that calls; may be left out where there is only one',
      '--access-token <secret>': accessToken('what the remote agent asks for'),
      '--local-port <port>': integer('the local port; the system chooses one where it is left out'),
    },
    operation: 'originOpen',
    progress: 'Connecting',
    text: ({ url }) => `${url} is this agent, for every program of this machine.`,
    remark: ({ id }) => `It stands until "svc origin close ${id}", over restarts too.`,
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
          o.is_served ? (o.last_error?.message ?? 'serves') : 'its port is taken: open it again',
        ]),
        'There are none: "svc origin open <aid>" makes one.',
      ),
    quiet: ({ origins }) => origins.map(({ url }) => url).join('\n'),
  });
  origin.call('close <id>', 'close a local address and its connections', {
    operation: 'originClose',
    text: (_, { id }) => `The local address ${id} is closed.`,
    quiet: (_, { id }) => id,
  });
}
