/** Types of the groups capability: its dependencies and its results. */
import type { OUTSIDE_STATES, Role } from '../../foundation/domain/groups.ts';
import type { NetworkState } from '../../foundation/due-queue.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { KnownAgents, NoteSending, RandomParts } from '../../foundation/node-parts.ts';
import type { EntryFilter, GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupStore } from '../../foundation/store/groups.ts';
import type { Links, LocalAgents } from '../../network/links/types.ts';
import type { EntryContent } from './entry.ts';

/** The parts of a note that invitations use. */
export interface InvitationNote {
  readonly sender: Aid;
  readonly body: Uint8Array;
}

/** The operations on notes that groups use. */
export interface GroupNotes extends NoteSending {
  /** Registers a handler for notes of one type. It runs in the transaction that stores the note. */
  onNote(msgType: number, handler: (recipient: Aid, note: InvitationNote) => void): void;
}

/** The operations on objects that groups use. An entry of kind `file` names an object of its author. */
export interface GroupObjects {
  has(aid: Aid, objectId: string): boolean;
}

export interface GroupsDependencies extends RandomParts, KnownAgents, LocalAgents {
  readonly groups: GroupStore;
  readonly entries: GroupEntryStore;
  readonly links: Links;
  readonly notes: GroupNotes;
  readonly objects?: GroupObjects;
  readonly network?: NetworkState;
  readonly delegations: DelegationVerifier;
  readonly events: EventSink;
  /** How far this clock is ahead of the clocks of other nodes, milliseconds. 0 if unknown. */
  clockAheadMs?(): number;
}

/** The role of an agent, or its state if it has a copy but no role. */
export type GroupRole = Role | (typeof OUTSIDE_STATES)[number];

export interface GroupSummary {
  readonly groupId: string;
  readonly title: string;
  readonly creator: Aid;
  readonly role: GroupRole;
  readonly entryCount: number;
  readonly unreadCount: number;
  readonly mentionCount: number;
  readonly memberCount: number;
  /** Unix milliseconds. */
  readonly lastActivityAt: number;
}

/** A group in the list of an agent's groups. */
export interface ListedGroup extends GroupSummary {
  /** Increases with each group that a local agent creates or joins. */
  readonly place: number;
  /** Position of the newest entry. */
  readonly lastSeq: number;
  /** The newest visible entry, or null if there is none. */
  readonly last: GroupEntry | null;
}

/** A received invitation, without the join secret. */
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

/** The content of a new entry. */
export type EntryDraft = Pick<EntryContent, 'kind' | 'body' | 'ref' | 'replyTo' | 'to' | 'proof'>;

/** An entry as it is returned to clients. */
export interface GroupEntry extends Omit<EntryDraft, 'proof'>, Pick<EntryContent, 'author' | 'at'> {
  readonly seq: number;
  readonly entryId: string;
  readonly retracted: boolean;
}

/** The filter of a page. */
export interface ReadQuery extends EntryFilter {
  readonly afterSeq: number;
  readonly limit: number;
}

export interface GroupPage {
  readonly entries: readonly GroupEntry[];
  /** The next page starts after this position. */
  readonly scannedToSeq: number;
  readonly hasMore: boolean;
  readonly readCursor: number;
  readonly unreadCount: number;
}
