/** What chat needs from others, and what others see of it. */
import type { PairState } from '../../foundation/domain/chat.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ChatEntry } from '../../foundation/store/chat-log.ts';

export type { LocalIdentity } from '../../network/links/types.ts';

/** Objects, as far as chat uses them: a file that is sent is one of the sender's. */
export interface ChatObjects {
  /** Registers a file of this machine as an object of an agent. */
  put(aid: Aid, path: string): Promise<{ readonly objectId: string; readonly size: number; readonly name: string }>;
  /** What is known of an agent's object; null where it has none of this id. */
  has(
    aid: Aid,
    objectId: string,
  ):
    | { readonly size: number; readonly name: string }
    | null
    | Promise<{ readonly size: number; readonly name: string } | null>;
}

/** What is to be sent: a text, or a file with or without one. */
export interface MessageDraft {
  readonly text?: string | undefined;
  /** A file of this machine, or an object of the agent's: not both. */
  readonly path?: string | undefined;
  readonly objectId?: string | undefined;
}

export interface SentEntry {
  readonly seq: number;
  /** `sent`: the peer's node has it. */
  readonly status: 'sent' | 'queued';
}

export interface Contact {
  readonly peer: Aid;
  readonly state: Exclude<PairState, 'none'>;
  /** Unix milliseconds. */
  readonly since: number;
  readonly note: string;
  readonly unread: number;
  /** Unix milliseconds of the last entry; null where there is none. */
  readonly lastAt: number | null;
}

/** Part of a conversation. */
export interface ConversationPage {
  readonly entries: readonly ChatEntry[];
  /** Where the next page begins: pass it as `afterSeq`. */
  readonly scannedTo: number;
  readonly hasMore: boolean;
  readonly readCursor: number;
  readonly unread: number;
}
