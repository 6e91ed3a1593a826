/** `svc push`: webhooks of programs here that agents elsewhere call back, and mailboxes for those of others. */
import { relativeTime } from '../../../foundation/plain-words.ts';
import type { CommandGroup } from '../command-group.ts';
import { formatTable } from '../text.ts';

export function pushCommands(svc: CommandGroup): void {
  const push = svc.group('push', 'webhooks that other agents call back', ['svc push list']);
  push.call('list', 'list the webhooks of programs here, and the mailboxes for those of others', {
    operation: 'pushList',
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
        'There are none: they come with the webhooks that programs name at local addresses of agents.',
      );
    },
    quiet: ({ webhooks, mailboxes }) => [...webhooks, ...mailboxes].map(({ id }) => id).join('\n'),
  });
  push.call('remove <id>', 'end a webhook or a mailbox, and drop what waits for it', {
    operation: 'pushRemove',
    text: (_, { id }) => `${id} is no more.`,
    quiet: (_, { id }) => id,
  });
}
