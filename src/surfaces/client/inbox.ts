/** Notes as they come: each stays in the mailbox until it was handled. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import type { CallOptions } from '../../operations/client.ts';
import type { SvcApi } from './api.ts';
import { lookAgain } from './hints.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';
import { base64Of } from './text.ts';

export interface InboxOptions {
  /** The agent here whose mailbox it is, by AID or label; the only one where it is left out. */
  readonly as?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** A note that somebody left. */
export interface ReceivedNote {
  /** The same for every copy. */
  readonly id: string;
  /** AID of the sender, proven by its signature. */
  readonly from: string;
  /** The body as text; as it came, from somebody else. */
  readonly text: string;
  readonly bytes: Uint8Array;
  /** What the body is: 3 is text. */
  readonly type: number;
  readonly sentAt: Date;
  /** Leaves a note of text for the sender. */
  reply(text: string): Promise<void>;
}

/** Leaves a note of text for an agent, which need not be there. @throws SvcError what the daemon answers */
export async function sendNote(api: SvcApi, as: string | undefined, recipient: string, text: string): Promise<void> {
  const aid = await actingAgent(api, as);
  await api.mailboxSend({ aid, recipient, msg_type: NOTE_TYPE.text, body_base64: base64Of(text) });
}

async function* waiting(api: SvcApi, aid: string, call: CallOptions): AsyncGenerator<ReceivedNote, void> {
  let cursor: string | undefined;
  do {
    const page = await api.mailboxList({ aid, cursor }, call);
    for (const { message_id: id, sender: from, msg_type: type, body_base64, sent_at } of page.messages) {
      // Who joins a room takes its invitation.
      if (type === NOTE_TYPE.invitation) continue;
      const bytes = fromBase64(body_base64) ?? new Uint8Array();
      const reply = (text: string): Promise<void> => sendNote(api, aid, from, text);
      yield { id, from, text: new TextDecoder().decode(bytes), bytes, type, sentAt: new Date(sent_at), reply };
      // Asked for the next one: this one was handled. Who breaks off or throws does not come here.
      await api.mailboxDelete({ aid, message_id: id }, call);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/**
 * The notes of an agent here, oldest first, and then those that come. A note is deleted when the next one is asked for;
 * one whose handling threw, or during which the program ended, comes again.
 * @throws SvcError what the daemon answers
 */
export async function* inboxOf(
  api: SvcApi,
  client: DaemonOptions,
  { as, signal }: InboxOptions,
): AsyncGenerator<ReceivedNote, void> {
  const aid = await actingAgent(api, as);
  yield* lookAgain({ api, client, aid, types: 'mailbox.received', signal }, (call) => waiting(api, aid, call));
}
