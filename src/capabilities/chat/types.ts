/** Types of the chat capability: its dependencies and its results. */

import type { PairState } from '../../foundation/domain/chat.ts';
import type { NetworkState } from '../../foundation/due-queue.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { KnownAgents, RandomParts } from '../../foundation/node-parts.ts';
import type { ChatStore, PairRow, ReadState } from '../../foundation/store/chat.ts';
import type { ChatEntry, ChatFile, ChatLog } from '../../foundation/store/chat-log.ts';
import type { Links, LocalAgents } from '../../network/links/types.ts';

type KnownObject = Pick<ChatFile, 'name' | 'size'> | null;

/** The operations on objects that chat uses. A sent file is an object of the sender. */
export interface ChatObjects {
  /** Registers a local file as an object of an agent. */
  put(aid: Aid, path: string): Promise<ChatFile>;
  /** The name and size of an agent's object, or null if it has none with this ID. */
  has(aid: Aid, objectId: string): KnownObject | Promise<KnownObject>;
}

export interface ChatDependencies extends RandomParts, KnownAgents, LocalAgents {
  readonly store: ChatStore;
  readonly entries: ChatLog;
  readonly links: Links;
  readonly objects: ChatObjects;
  readonly events: EventSink;
  readonly network: NetworkState;
}

/** The content of a new message: a text, a file, or both. */
export interface MessageDraft {
  readonly text?: string | undefined;
  /** A local file or an object of the agent, not both. */
  readonly path?: string | undefined;
  readonly objectId?: string | undefined;
}

export interface SentEntry {
  readonly seq: number;
  /** `sent`: the peer's node has the entry. */
  readonly status: 'sent' | 'queued';
}

/** A peer and its relationship to the agent. Times are Unix milliseconds. */
export interface Contact extends Pick<PairRow, 'peer' | 'since' | 'note' | 'unread' | 'lastAt' | 'lastSeq'> {
  readonly state: Exclude<PairState, 'none'>;
  /** The newest entry, or null if there is none. */
  readonly last: ChatEntry | null;
}

/** Part of a conversation. */
export interface ConversationPage extends ReadState {
  readonly entries: readonly ChatEntry[];
  /** Pass this as `afterSeq` to read the next page. */
  readonly scannedTo: number;
  readonly hasMore: boolean;
}
