/** What groups need from others, and what others see of them. */
import type { Clock } from '../../foundation/clock.ts';
import type { OUTSIDE_STATES, Role } from '../../foundation/domain/groups.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { Log } from '../../foundation/log.ts';
import type { EntryFilter, GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupStore } from '../../foundation/store/groups.ts';
import type { Links, LocalIdentity } from '../../network/links/types.ts';
import type { EntryContent } from './entry.ts';

/** A note, as far as invitations need it. */
export interface InvitationNote {
  readonly sender: Aid;
  readonly body: Uint8Array;
}

/** The notes, as far as groups use them. */
export interface GroupNotes {
  send(sender: Aid, recipient: Aid, msgType: number, body: Uint8Array): Promise<{ readonly delivered: boolean }>;
  /** Names who is told of the notes of a type, in the transaction that keeps each. */
  onNote(msgType: number, handler: (recipient: Aid, note: InvitationNote) => void): void;
}

/** Objects, as far as groups use them: entries of kind `file` name one of the agent's. */
export interface GroupObjects {
  has(aid: Aid, objectId: string): boolean;
}

export interface GroupsDependencies {
  readonly groups: GroupStore;
  readonly entries: GroupEntryStore;
  readonly links: Links;
  readonly notes: GroupNotes;
  readonly objects?: GroupObjects;
  readonly delegations: Pick<DelegationVerifier, 'verifyAsync'>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  /** The identity of a registered agent here; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
  /** A number from 0 to below 1. */
  random(): number;
  /** The owner of an agent here knows another one: strangers give way to it. */
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
  /** By how much this clock is ahead of the clocks of other nodes, milliseconds; 0 if that is not known. */
  clockAheadMs?(): number;
}

/** Where an agent stands in a group that it has a copy of. */
export type Standing = Role | (typeof OUTSIDE_STATES)[number];

export interface GroupSummary {
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

/** A group in the list of an agent's. */
export interface ListedGroup extends GroupSummary {
  /** Grows with each group that an agent here makes or joins. */
  readonly place: number;
  /** Place of the newest entry. */
  readonly lastSeq: number;
  /** The newest entry that counts; null where there is none yet. */
  readonly last: GroupEntry | null;
}

/** An invitation that came, as it is shown: without the secret that lets its agent in. */
export interface GroupInvitation {
  readonly groupId: string;
  readonly title: string;
  readonly creator: Aid;
  readonly inviter: Aid;
  /** Unix milliseconds. */
  readonly at: number;
}

export interface GroupHead extends GroupSummary {
  readonly link: string;
  readonly members: readonly { readonly aid: Aid; readonly role: Role }[];
  readonly maxSeq: number;
  readonly readCursor: number;
}

/** What an agent adds to a group. */
export type EntryDraft = Pick<EntryContent, 'kind' | 'body' | 'ref' | 'replyTo' | 'to' | 'proof'>;

/** An entry as it is shown. */
export interface GroupEntry extends Omit<EntryDraft, 'proof'>, Pick<EntryContent, 'author' | 'at'> {
  readonly seq: number;
  readonly entryId: string;
  readonly retracted: boolean;
}

/** What a page is to hold. */
export interface ReadQuery extends EntryFilter {
  readonly afterSeq: number;
  readonly limit: number;
}

export interface GroupPage {
  readonly entries: readonly GroupEntry[];
  /** The next page begins behind this. */
  readonly scannedToSeq: number;
  readonly hasMore: boolean;
  readonly readCursor: number;
  readonly unreadCount: number;
}
