/** The dependencies of notes, and the types that callers see. */
import type { NoteOutcome } from '../../foundation/domain/notes.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { KnownAgents, RandomParts } from '../../foundation/node-parts.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { NoteCopyStore } from '../../foundation/store/note-copies.ts';
import type { NoteOutboxStore } from '../../foundation/store/note-outbox.ts';
import type { NoteStore } from '../../foundation/store/notes.ts';
import type { Links, LocalAgents } from '../../network/links/types.ts';
import type { RecordNetwork } from '../../network/records/types.ts';
import type { SecretVault } from './note-keys.ts';

/** A published record. */
export interface KeyPublication {
  readonly payload: Uint8Array;
  /** Unix milliseconds of the last acknowledged publication; null if there was none. */
  readonly publishedAt: number | null;
}

/** The part of the directory that publishes encryption keys. */
export interface KeyDirectory {
  /** The record of a type that is published for an agent; null if there is none. */
  published(aid: Aid, type: RecordType): KeyPublication | null;
  /** Publishes a record under the agent's key and renews it. `ttl` in seconds. */
  publishRecord(aid: Aid, type: RecordType, payload: Uint8Array, ttl: number): Promise<unknown>;
}

export interface AgentsPage {
  readonly aids: readonly Aid[];
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
}

export interface NotesDependencies extends RandomParts, KnownAgents, LocalAgents {
  readonly store: NoteStore;
  readonly copies: NoteCopyStore;
  readonly outbox: NoteOutboxStore;
  readonly network: RecordNetwork;
  readonly links: Links;
  readonly vault: SecretVault;
  readonly directory: KeyDirectory;
  readonly delegations: DelegationVerifier;
  readonly events: EventSink;
  /** The local agents, in a stable order. */
  agents(cursor: string | undefined, limit: number): AgentsPage;
  /** True if the AID was created here a moment ago, so it has no notes yet. */
  isNew(aid: Aid): boolean;
  /** Unix seconds of the newest delegation seen of an agent; 0 if none was. */
  newestDelegation(aid: Aid): number;
  /** A valid record of an agent to which a link will be opened soon. It may not be the newest one. */
  approach?(record: SignedRecord): void;
  /** Usual time of an answer from the record network, milliseconds. */
  usualRttMs?(): number;
  /** Milliseconds that this clock is ahead of the clocks of other nodes; 0 if unknown. */
  clockAheadMs?(): number;
}

/** A note in a mailbox. */
export interface Note {
  /** Lower-case hex. */
  readonly messageId: string;
  readonly sender: Aid;
  readonly msgType: number;
  readonly body: Uint8Array;
  /** Unix milliseconds, according to the sender. */
  readonly sentAt: number;
}

/**
 * Notified of each new note of one type, in the transaction that stores it: its own changes are stored with the note or
 * not at all. If it throws, the note is stored without them.
 */
export type NoteHandler = (recipient: Aid, note: Note) => void;

/**
 * Takes the notes of one type instead of the mailbox, in the transaction that stores their IDs. If it throws, the note is
 * refused.
 */
export type NoteTaker = (recipient: Aid, note: Note) => NoteOutcome;
