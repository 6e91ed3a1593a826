/** Handlers of the mailbox operations. */
import type { EventWaits } from '../../capabilities/events/event-waits.ts';
import type { Notes } from '../../capabilities/notes/notes.ts';
import type { Note } from '../../capabilities/notes/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { plainText, toHex } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { MAILBOX_PAGE_DEFAULT, type mailOperations } from '../mail.ts';
import type { Handlers } from '../operation.ts';
import { afterAnswer, bodyOf } from './values.ts';

export interface MailHandlerDependencies {
  readonly notes: Pick<Notes, 'post' | 'list' | 'listRead' | 'remove' | 'take' | 'queued' | 'cancelQueued'>;
  readonly waits: Pick<EventWaits, 'until'>;
}

/** A note as it is returned to clients. */
export function noteView(note: Note) {
  return {
    message_id: note.messageId,
    sender: note.sender,
    msg_type: note.msgType,
    body_base64: toBase64(note.body),
    text: plainText(note.body),
    sent_at: isoTime(note.sentAt),
  };
}

export function mailHandlers({ notes, waits }: MailHandlerDependencies): Handlers<typeof mailOperations> {
  return {
    mailboxSend: async ({ aid, recipient, msg_type = NOTE_TYPE.text, text, body_base64 }, context) => {
      const body = bodyOf(text, body_base64, 'body_base64');
      if (body === undefined)
        throw new SvcError('invalid_request', {
          message: 'Send text or body_base64.',
          details: { in: 'body', path: '/text' },
        });
      const sent = await notes.post(aid, recipient, msg_type, body);
      afterAnswer(context, sent.settle);
      const { messageId, replicas, delivered, queued } = sent;
      if (queued) context.setStatus(202);
      return { ok: true, message_id: messageId, replicas, delivered, queued };
    },
    mailboxList: async ({ aid, limit = MAILBOX_PAGE_DEFAULT, cursor, wait_s, read: isRead = false }, client) => {
      if (isRead) return { messages: notes.listRead(aid).map(noteView) };
      const read = () => notes.list(aid, limit, cursor);
      const page = await waits.until({ aid, wait_s, client }, read, (one) => one.notes.length === 0);
      return { messages: page.notes.map(noteView), next_cursor: page.nextCursor ?? undefined };
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
      return { messages: taken.notes.map(noteView), has_more: taken.more };
    },
  };
}
