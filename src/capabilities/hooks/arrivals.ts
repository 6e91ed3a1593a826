/** Items that arrived for an agent, as the events of its capabilities report them. */

import type { HookKind } from '../../foundation/domain/hooks.ts';
import { NOTE_TYPE } from '../../foundation/domain/notes.ts';
import type { EventPayloads, EventType } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';

/** An item that may start a hook. */
export interface Arrival {
  readonly kind: HookKind;
  readonly aid: Aid;
  readonly peer: Aid;
  /** Names the item: see `ItemRef`. */
  readonly ref: string;
  /** Items of one conversation are handled in sequence. */
  readonly conversation: string;
}

/** The parts of items that events lack. */
export interface ArrivalDetails {
  /** Sender and type of a pending note; null if it is not there. */
  note(aid: Aid, messageId: string): { readonly sender: Aid; readonly msgType: number } | null;
  /** ID of a chat message in hex; null if it is not there. */
  chatEntryId(aid: Aid, peer: Aid, seq: number): string | null;
  /** Address from which an agent last connected; null if it is unknown, as for notes of other nodes. */
  addressOf(peer: Aid): string | null;
  /** Unix milliseconds. */
  now(): number;
}

/** How a delivery names its item. */
export type ItemRef =
  | { readonly kind: 'note'; readonly messageId: string }
  | { readonly kind: 'chat'; readonly seq: number; readonly entryId: string }
  | { readonly kind: 'access'; readonly request: string }
  /** Its caller waits for the answer of the program. */
  | { readonly kind: 'call' }
  | { readonly kind: 'mention'; readonly groupId: string; readonly entryId: string }
  | { readonly kind: 'file'; readonly offerId: string }
  /** `at` distinguishes two invitations. @see groupId null for a chat request */
  | { readonly kind: 'invitation'; readonly groupId: string | null; readonly at: number };

type Emitted = { readonly [T in EventType]: { readonly type: T; readonly data: EventPayloads[T] } }[EventType];

/** The items that an event announces. Runs in the transaction that stores them. */
export function arrivalsIn(aid: Aid, event: Emitted, details: ArrivalDetails): Arrival[] {
  const from = (peer: Aid, ref: ItemRef, conversation: string = peer): Arrival[] => [
    { kind: ref.kind, aid, peer, ref: JSON.stringify(ref), conversation: `${aid} ${conversation}` },
  ];
  switch (event.type) {
    case 'mailbox.received':
      return event.data.message_ids.flatMap((messageId) => {
        const note = details.note(aid, messageId);
        // Invitations to groups have their own kind.
        if (note === null || note.msgType === NOTE_TYPE.invitation) return [];
        return from(note.sender, { kind: 'note', messageId });
      });
    case 'chat.received': {
      const { peer, seq } = event.data;
      const entryId = details.chatEntryId(aid, peer, seq);
      return entryId === null ? [] : from(peer, { kind: 'chat', seq, entryId });
    }
    case 'group.mentioned': {
      const { group_id: groupId, entry_id: entryId, from: author } = event.data;
      return from(author, { kind: 'mention', groupId, entryId }, groupId);
    }
    case 'file.offered':
      return from(event.data.from, { kind: 'file', offerId: event.data.offer_id });
    case 'chat.invites': {
      const { from: peer } = event.data;
      return peer === undefined ? [] : from(peer, { kind: 'invitation', groupId: null, at: details.now() });
    }
    case 'group.invited': {
      const { group_id: groupId, from: inviter } = event.data;
      return from(inviter, { kind: 'invitation', groupId, at: details.now() });
    }
    case 'access.requested':
      return from(event.data.caller, { kind: 'access', request: event.data.request });
    default:
      return [];
  }
}
