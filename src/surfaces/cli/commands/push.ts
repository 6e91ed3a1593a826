/** `svc push`: webhooks of local programs that remote agents can notify, and webhook URLs reserved for others. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { CommandGroup } from '../command-group.ts';
import { formatTable } from '../text.ts';

export function pushCommands(svc: CommandGroup): void {
  const push = svc.group('push', 'webhooks that remote agents can notify', ['svc push list']);
  push.call('pushList', 'list', 'list the webhooks of local programs, and the webhook URLs reserved for others', {
    text: ({ webhooks, mailboxes }) => {
      const when = (iso: string): string => relativeTime(iso, Date.now());
      return formatTable(
        ['ID', 'FOR', 'AGENT', 'WAITING', 'SINCE', 'ENDS', 'TRIED', 'STATE'],
        [
          ...webhooks.map((w) => [
            w.id,
            w.url,
            w.remote_aid,
            String(w.waiting),
            when(w.registered_at),
            when(w.expires_at),
            w.last_tried_at === undefined ? '-' : when(w.last_tried_at),
            w.last_error ?? `${w.taken} taken`,
          ]),
          ...mailboxes.map((b) => [
            b.id,
            'webhooks of this agent',
            b.caller_aid,
            String(b.waiting),
            when(b.opened_at),
            when(b.expires_at),
            '-',
            'open',
          ]),
        ],
        'None. svcd creates them when a program registers a webhook through a local address of an agent.',
      );
    },
    quiet: ({ webhooks, mailboxes }) => [...webhooks, ...mailboxes].map(({ id }) => id).join('\n'),
  });
  push.call('pushRemove', 'rm <id>', 'delete a webhook or webhook URL with its queued notifications', {
    text: (_, { id }) => `Deleted ${id}.`,
  });
}
