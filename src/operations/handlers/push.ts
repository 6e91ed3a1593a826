/** Handlers of the webhook operations. */
import type { WebhookUrlInfo, WebhookUrls } from '../../capabilities/push/webhook-urls.ts';
import type { WebhookInfo, Webhooks } from '../../capabilities/push/webhooks.ts';
import { isoTime } from '../../foundation/clock.ts';
import { PUSH_BOX_LIFE_MS, WEBHOOK_LIFE_MS } from '../../foundation/domain/push.ts';
import type { Handlers } from '../operation.ts';
import type { pushOperations } from '../push.ts';

export interface PushHandlerDependencies {
  readonly webhooks: Pick<Webhooks, 'list' | 'remove' | 'has'>;
  readonly webhookUrls: Pick<WebhookUrls, 'list' | 'remove'>;
}

/** An address without its query and fragment, which may contain a secret. */
function shownUrl(url: string): string {
  const [place = url] = url.split(/[?#]/, 1);
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
    last_tried_at: w.lastTry === null ? undefined : isoTime(w.lastTry.at),
    expires_at: isoTime(w.usedAt + WEBHOOK_LIFE_MS),
    last_error: w.lastTry?.error ?? undefined,
  };
}

function webhookUrlView(b: WebhookUrlInfo) {
  return {
    id: b.id,
    called_aid: b.called,
    caller_aid: b.caller,
    opened_at: isoTime(b.openedAt),
    renewed_at: isoTime(b.renewedAt),
    expires_at: isoTime(b.renewedAt + PUSH_BOX_LIFE_MS),
    waiting: b.waiting,
  };
}

export function pushHandlers({ webhooks, webhookUrls }: PushHandlerDependencies): Handlers<typeof pushOperations> {
  return {
    pushList: () => ({ webhooks: webhooks.list().map(webhookView), mailboxes: webhookUrls.list().map(webhookUrlView) }),
    pushRemove: ({ id }) => {
      if (webhooks.has(id)) webhooks.remove(id);
      else webhookUrls.remove(id);
      return { ok: true };
    },
  };
}
