/** The handlers of the operations on webhooks and mailboxes. */
import type { Mailboxes, MailboxInfo } from '../../capabilities/push/mailboxes.ts';
import type { WebhookInfo, Webhooks } from '../../capabilities/push/webhooks.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { Handlers } from '../operation.ts';
import type { pushOperations } from '../push.ts';

export interface PushHandlerDependencies {
  readonly webhooks: Pick<Webhooks, 'list' | 'end' | 'has'>;
  readonly mailboxes: Pick<Mailboxes, 'list' | 'end'>;
}

/** An address without its query, which may hold a secret. */
function shownUrl(url: string): string {
  const [place = url] = url.split('?', 1);
  return place;
}

function webhookView(w: WebhookInfo) {
  return {
    id: w.name,
    origin_id: w.originId,
    local_aid: w.localAid,
    remote_aid: w.remoteAid,
    url: shownUrl(w.url),
    registered_at: isoTime(w.registeredAt),
    used_at: isoTime(w.usedAt),
    taken: w.taken,
    waiting: w.waiting,
    last_error: w.lastError ?? undefined,
  };
}

function mailboxView(b: MailboxInfo) {
  return {
    id: b.id,
    called_aid: b.called,
    caller_aid: b.caller,
    opened_at: isoTime(b.openedAt),
    renewed_at: isoTime(b.renewedAt),
    waiting: b.waiting,
  };
}

export function pushHandlers({ webhooks, mailboxes }: PushHandlerDependencies): Handlers<typeof pushOperations> {
  return {
    pushList: () => ({ webhooks: webhooks.list().map(webhookView), mailboxes: mailboxes.list().map(mailboxView) }),
    pushRemove: ({ id }) => {
      if (webhooks.has(id)) webhooks.end(id);
      else mailboxes.end(id);
      return { ok: true };
    },
  };
}
