/** What chat needs from others, and what others see of it. */
import type { PairState } from '../../foundation/domain/chat.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { PairRow, ReadState } from '../../foundation/store/chat.ts';
import type { ChatEntry, ChatFile } from '../../foundation/store/chat-log.ts';

export type { LocalIdentity } from '../../network/links/types.ts';

type KnownObject = Pick<ChatFile, 'name' | 'size'> | null;

/** Objects, as far as chat uses them: a file that is sent is one of the sender's. */
export interface ChatObjects {
  /** Registers a file of this machine as an object of an agent. */
  put(aid: Aid, path: string): Promise<ChatFile>;
  /** What is known of an agent's object; null where it has none of this id. */
  has(aid: Aid, objectId: string): KnownObject | Promise<KnownObject>;
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

/** A peer, and how the agent stands to it; times are Unix milliseconds. */
export interface Contact extends Pick<PairRow, 'peer' | 'since' | 'note' | 'unread' | 'lastAt' | 'lastSeq'> {
  readonly state: Exclude<PairState, 'none'>;
  /** The newest entry; null where nothing was said yet. */
  readonly last: ChatEntry | null;
}

/** Part of a conversation. */
export interface ConversationPage extends ReadState {
  readonly entries: readonly ChatEntry[];
  /** Where the next page begins: pass it as `afterSeq`. */
  readonly scannedTo: number;
  readonly hasMore: boolean;
}
