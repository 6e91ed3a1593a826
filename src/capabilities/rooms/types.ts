/** What rooms need from others, and what others see of them. */
import type { OUTSIDE_STATES, Role } from '../../foundation/domain/rooms.ts';
import type { Aid } from '../../foundation/identity/aid.ts';

export type { LocalIdentity } from '../../network/links/types.ts';

/** A note, as far as invitations need it. */
export interface InvitationNote {
  readonly sender: Aid;
  readonly body: Uint8Array;
}

/** The notes, as far as rooms use them. */
export interface RoomNotes {
  send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<{ readonly delivered: boolean }>;
  /** Names who is told of the notes of a type, in the transaction that keeps each. */
  onNote(msgType: number, handler: (recipient: Aid, note: InvitationNote) => void): void;
}

/** Objects, as far as rooms use them: entries of kind `file` name one of the agent's. */
export interface RoomObjects {
  has(aid: Aid, objectId: string): boolean;
}

/** Where an agent stands in a room that it has a copy of. */
export type Standing = Role | (typeof OUTSIDE_STATES)[number];

export interface RoomSummary {
  readonly groupId: string;
  readonly title: string;
  readonly creator: Aid;
  readonly role: Standing;
  readonly entryCount: number;
  readonly unreadCount: number;
  readonly mentionCount: number;
  readonly memberCount: number;
  /** Unix milliseconds. */
  readonly lastActivityAt: number;
}

export interface RoomHead extends RoomSummary {
  readonly link: string;
  readonly members: readonly { readonly aid: Aid; readonly role: Role }[];
  readonly maxSeq: number;
  readonly readCursor: number;
}

/** An entry as it is shown. */
export interface RoomEntry {
  readonly seq: number;
  readonly entryId: string;
  readonly author: Aid;
  readonly kind: string;
  /** Unix milliseconds, as the author says. */
  readonly at: number;
  readonly body?: Uint8Array;
  readonly ref?: string;
  readonly replyTo?: string;
  readonly to?: readonly Aid[];
  readonly retracted: boolean;
}

export interface RoomPage {
  readonly entries: readonly RoomEntry[];
  /** The next page begins behind this. */
  readonly scannedToSeq: number;
  readonly hasMore: boolean;
  readonly readCursor: number;
  readonly unreadCount: number;
}

/** What an agent adds to a room. */
export interface EntryDraft {
  readonly kind: string;
  readonly body?: Uint8Array;
  readonly ref?: string;
  readonly replyTo?: string;
  readonly to?: readonly Aid[];
  readonly proof?: Uint8Array;
}
