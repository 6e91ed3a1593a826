/** The handlers of the operations on mailboxes. */
import type { Notes } from '../../capabilities/notes/notes.ts';
import type { Note } from '../../capabilities/notes/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { fromBase64 } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import { MAILBOX_PAGE_DEFAULT, type mailOperations } from '../mail.ts';
import type { CallContext, Handlers, OutputOf } from '../operation.ts';

export interface MailHandlerDependencies {
  readonly notes: Pick<Notes, 'post' | 'list' | 'take'>;
}

function view(note: Note): OutputOf<typeof mailOperations.mailboxList>['messages'][number] {
  return {
    message_id: note.messageId,
    sender: note.sender,
    msg_type: note.msgType,
    body_base64: toBase64(note.body),
    sent_at: isoTime(note.sentAt),
  };
}

function bodyOf(base64: string): Uint8Array {
  const body = fromBase64(base64);
  if (body === null)
    throw new SvcError('invalid_request', {
      message: 'body_base64 is not standard base64.',
      details: { in: 'body', path: '/body_base64' },
    });
  return body;
}

/** Where a surface cannot tell whether its answer arrives, it counts as arrived. */
function afterAnswer(context: CallContext, settled: (arrived: boolean) => void): void {
  if (context.onAnswered === undefined) settled(true);
  else context.onAnswered(settled);
}

export function mailHandlers({ notes }: MailHandlerDependencies): Handlers<typeof mailOperations> {
  return {
    mailboxSend: async (input, context) => {
      const body = bodyOf(input.body_base64);
      const sent = await notes.post(parseAid(input.aid), parseAid(input.recipient), input.msg_type, body);
      afterAnswer(context, sent.settle);
      return { ok: true, message_id: sent.messageId, replicas: sent.replicas, delivered: sent.delivered };
    },
    mailboxList: ({ aid, limit = MAILBOX_PAGE_DEFAULT, cursor }) => {
      const page = notes.list(parseAid(aid), limit, cursor);
      return {
        messages: page.notes.map(view),
        ...(page.nextCursor === null ? {} : { next_cursor: page.nextCursor }),
      };
    },
    mailboxPoll: ({ aid }, context) => {
      const taken = notes.take(parseAid(aid));
      afterAnswer(context, (arrived) => (arrived ? taken.confirm() : taken.giveBack()));
      return { messages: taken.notes.map(view), has_more: taken.more };
    },
  };
}
