/** Handlers of the mailbox operations. */
import type { Notes } from '../../capabilities/notes/notes.ts';
import type { Note } from '../../capabilities/notes/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { toHex } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { MAILBOX_PAGE_DEFAULT, type mailOperations } from '../mail.ts';
import type { CallContext, Handlers } from '../operation.ts';
import { bytesOf } from './values.ts';

export interface MailHandlerDependencies {
  readonly notes: Pick<Notes, 'post' | 'list' | 'remove' | 'take' | 'queued' | 'cancelQueued'>;
}

function view(note: Note) {
  return {
    message_id: note.messageId,
    sender: note.sender,
    msg_type: note.msgType,
    body_base64: toBase64(note.body),
    sent_at: isoTime(note.sentAt),
  };
}

/** If the surface cannot tell whether its response arrives, it counts as arrived. */
function afterAnswer(context: CallContext, settled: (arrived: boolean) => void): void {
  if (context.onAnswered === undefined) settled(true);
  else context.onAnswered(settled);
}

export function mailHandlers({ notes }: MailHandlerDependencies): Handlers<typeof mailOperations> {
  return {
    mailboxSend: async ({ aid, recipient, msg_type, body_base64 }, context) => {
      const sent = await notes.post(aid, recipient, msg_type, bytesOf(body_base64, 'body_base64'));
      afterAnswer(context, sent.settle);
      const { messageId, replicas, delivered, queued } = sent;
      if (queued) context.setStatus(202);
      return { ok: true, message_id: messageId, replicas, delivered, queued };
    },
    mailboxList: ({ aid, limit = MAILBOX_PAGE_DEFAULT, cursor }) => {
      const page = notes.list(aid, limit, cursor);
      return { messages: page.notes.map(view), next_cursor: page.nextCursor ?? undefined };
    },
    mailboxDelete: ({ aid, message_id }) => {
      notes.remove(aid, message_id);
      return { ok: true };
    },
    mailboxQueued: ({ aid, limit = MAILBOX_PAGE_DEFAULT, cursor }) => {
      const page = notes.queued(aid, limit, cursor);
      return {
        messages: page.notes.map((note) => ({
          message_id: toHex(note.messageId),
          recipient: note.recipient,
          msg_type: note.msgType,
          size: note.body.length,
          sent_at: isoTime(note.sentAt),
          expires_at: isoTime(note.until),
          next_attempt_at: isoTime(note.dueAt),
          attempts: note.attempts,
        })),
        next_cursor: page.nextCursor ?? undefined,
      };
    },
    mailboxQueuedDelete: ({ aid, message_id }) => {
      notes.cancelQueued(aid, message_id);
      return { ok: true };
    },
    mailboxPoll: ({ aid }, context) => {
      const taken = notes.take(aid);
      afterAnswer(context, (arrived) => (arrived ? taken.confirm() : taken.giveBack()));
      return { messages: taken.notes.map(view), has_more: taken.more };
    },
  };
}
