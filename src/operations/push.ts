/** Operations on webhooks that agents elsewhere call back, and on the mailboxes for those of others. */
import { Type } from 'typebox';
import { MAX_PUSH_BOXES, MAX_SHOWN_WEBHOOKS } from '../foundation/domain/push.ts';
import { declare } from './declare.ts';
import { AidText, closed, Id, Ok, Timestamp } from './schemas.ts';

const Waiting = Type.Integer({ minimum: 0, description: 'Notifications that wait.' });

const Expires = { ...Timestamp, description: 'When it ends if it is not used until then.' };

const WebhookView = Type.Object({
  id: Type.String(),
  origin_id: Type.String({ description: 'The local address through which it was registered.' }),
  local_aid: AidText,
  remote_aid: AidText,
  url: Type.String({ description: 'Without a query, which may hold a secret.' }),
  registered_at: Timestamp,
  used_at: Timestamp,
  taken: Type.Integer({ minimum: 0, description: 'Notifications that it has taken.' }),
  waiting: Waiting,
  last_tried_at: Type.Optional({ ...Timestamp, description: 'When something was posted to it last, since the start.' }),
  expires_at: Expires,
  last_error: Type.Optional(Type.String({ description: 'Why the last notification did not come through.' })),
});

const MailboxView = Type.Object({
  id: Type.String(),
  called_aid: AidText,
  caller_aid: AidText,
  opened_at: Timestamp,
  renewed_at: Timestamp,
  expires_at: Expires,
  waiting: Waiting,
});

export const pushOperations = declare(
  { tag: 'Tunnels' },
  {
    pushList: {
      summary:
        'Lists the webhooks of programs here that other agents call back, and the mailboxes for those of others.',
      route: 'GET /push',
      output: Type.Object({
        webhooks: Type.Array(WebhookView, { maxItems: MAX_SHOWN_WEBHOOKS, description: 'Those used last first.' }),
        mailboxes: Type.Array(MailboxView, { maxItems: MAX_PUSH_BOXES }),
      }),
    },

    pushRemove: {
      summary: 'Ends a webhook or a mailbox, and drops what waits for it.',
      route: 'DELETE /push/{id}',
      params: closed({ id: Id }),
      output: Ok,
      errors: ['not_found'],
    },
  },
);
