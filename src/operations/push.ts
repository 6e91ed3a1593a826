/** Operations on webhooks. */
import { Type } from 'typebox';
import { MAX_PUSH_BOXES, MAX_SHOWN_WEBHOOKS } from '../foundation/domain/push.ts';
import { declare } from './declare.ts';
import { AidText, closed, Id, Ok, Timestamp } from './schemas.ts';

const Waiting = Type.Integer({ minimum: 0, description: 'Queued notifications.' });

const Expires = { ...Timestamp, description: 'Expires then, unless it is used.' };

const WebhookView = Type.Object({
  id: Type.String(),
  origin_id: Type.String({ description: 'The local address with which it was registered.' }),
  local_aid: AidText,
  remote_aid: AidText,
  url: Type.String({ description: 'Without its query, which may contain a secret.' }),
  registered_at: Timestamp,
  used_at: Timestamp,
  taken: Type.Integer({ minimum: 0, description: 'Notifications that it accepted.' }),
  waiting: Waiting,
  last_tried_at: Type.Optional({ ...Timestamp, description: 'The last delivery attempt since the start.' }),
  expires_at: Expires,
  last_error: Type.Optional(Type.String({ description: 'Why the last notification was not delivered.' })),
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
      summary: 'Lists the webhooks of local programs, and the ones that other agents registered here (`mailboxes`).',
      route: 'GET /push',
      output: Type.Object({
        webhooks: Type.Array(WebhookView, { maxItems: MAX_SHOWN_WEBHOOKS, description: 'Most recently used first.' }),
        mailboxes: Type.Array(MailboxView, { maxItems: MAX_PUSH_BOXES }),
      }),
    },

    pushRemove: {
      summary: 'Removes a webhook and its queued notifications.',
      route: 'DELETE /push/{id}',
      params: closed({ id: Id }),
      output: Ok,
      errors: ['not_found'],
    },
  },
);
