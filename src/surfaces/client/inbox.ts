/** Iterates received notes. Each note stays in the mailbox until it was handled. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import type { CallOptions } from '../../operations/client.ts';
import { base64Of, type SvcApi } from './api.ts';
import { rerunAfterEvents } from './event-loop.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';

export interface InboxOptions {
  /** AID or label of the local agent. Optional if there is only one. */
  readonly as?: string;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** A received note. */
export interface ReceivedNote {
  /** The same for every copy. */
  readonly id: string;
  /** AID of the sender, verified by its signature. */
  readonly from: string;
  /** The body as text, written by the sender. */
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Type of the body. 3 is text. */
  readonly type: number;
  readonly sentAt: Date;
  /** Sends a text note to the sender. */
  reply(text: string): Promise<void>;
}

/** Sends a text note to an agent, which may be offline. @throws SvcError errors of the daemon */
export async function sendNote(api: SvcApi, as: string | undefined, recipient: string, text: string): Promise<void> {
  const aid = await actingAgent(api, as);
  await api.mailboxSend({ aid, recipient, msg_type: NOTE_TYPE.text, body_base64: base64Of(text) });
}

async function* waiting(api: SvcApi, aid: string, call: CallOptions): AsyncGenerator<ReceivedNote, void> {
  let cursor: string | undefined;
  do {
    const page = await api.mailboxList({ aid, cursor }, call);
    for (const { message_id: id, sender: from, msg_type: type, body_base64, sent_at } of page.messages) {
      // An invitation is handled when the agent joins the group.
      if (type === NOTE_TYPE.invitation) continue;
      const bytes = fromBase64(body_base64) ?? new Uint8Array();
      const reply = (text: string): Promise<void> => sendNote(api, aid, from, text);
      yield { id, from, text: new TextDecoder().decode(bytes), bytes, type, sentAt: new Date(sent_at), reply };
      // The consumer requested the next note, so it handled this one. This line is not reached if it breaks or throws.
      await api.mailboxDelete({ aid, message_id: id }, call);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/**
 * The received notes of a local agent, oldest first, then new ones. A note is deleted when the next one is requested.
 * If the handler throws or the program ends, the note is delivered again.
 * @throws SvcError errors of the daemon
 */
export async function* iterateNotes(
  api: SvcApi,
  client: DaemonOptions,
  { as, signal }: InboxOptions,
): AsyncGenerator<ReceivedNote, void> {
  const aid = await actingAgent(api, as);
  yield* rerunAfterEvents({ api, client, aid, types: 'mailbox.received', signal }, (call) => waiting(api, aid, call));
}
