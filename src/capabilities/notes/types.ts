/** What notes need from others, and what others see of them. */
import type { NoteOutcome } from '../../foundation/domain/notes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { RecordNetwork } from '../../network/records/types.ts';

export type { LocalIdentity } from '../../network/links/types.ts';

/** The part of the record network that notes use. */
export type MailNetwork = Pick<
  RecordNetwork,
  'put' | 'list' | 'near' | 'removeNotes' | 'reachability' | 'onReachability'
>;

/** What the directory keeps on the network for an agent. */
export interface KeyPublication {
  readonly payload: Uint8Array;
  /** Unix milliseconds of the last acknowledged publication; null where there was none. */
  readonly publishedAt: number | null;
}

/** The directory, as far as encryption keys are concerned. */
export interface KeyDirectory {
  /** The record of a type that is kept for an agent; null where there is none. */
  published(aid: Aid, type: RecordType): KeyPublication | null;
  /** Publishes a record under the agent's key and keeps it there. `ttl` in seconds. */
  publishRecord(aid: Aid, type: RecordType, payload: Uint8Array, ttl: number): Promise<unknown>;
}

/** A note that waits in a mailbox. */
export interface Note {
  /** Lower-case hex. */
  readonly messageId: string;
  readonly sender: Aid;
  readonly msgType: number;
  readonly body: Uint8Array;
  /** Unix milliseconds, as the sender says. */
  readonly sentAt: number;
}

/**
 * Told of each new note of one type, in the transaction that keeps it: what it writes to the
 * database is kept with the note or not at all. Where it throws, the note is kept without it.
 */
export type NoteHandler = (recipient: Aid, note: Note) => void;

/**
 * Takes the notes of one type in place of the mailbox, in the transaction that remembers their ids. Where it throws, the
 * note is refused.
 */
export type NoteTaker = (recipient: Aid, note: Note) => NoteOutcome;

/** How sending went. */
export interface SendResult {
  readonly messageId: string;
  /** Nodes of the record network that keep the note. */
  readonly replicas: number;
  /** The recipient's node has it. */
  readonly delivered: boolean;
  /** No other node has it yet. It is on disk here and sent again until one does, or it expires. */
  readonly queued: boolean;
}
