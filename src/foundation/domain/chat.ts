/** Chat: conversations of two agents that have agreed on it. Rules: docs/notes-and-chat.md. */

/** How a local agent stands to a peer, other than not at all. */
export const CONTACT_STATES = ['friends', 'out_pending', 'in_pending', 'blocked'] as const;
/** `none`: a conversation that is over, or never began. */
export const PAIR_STATES = ['none', ...CONTACT_STATES] as const;
export type PairState = (typeof PAIR_STATES)[number];
/** What the peer has yet to be told. */
export const CONTROLS = ['request', 'accept', 'gone'] as const;
export type Control = (typeof CONTROLS)[number];
/** What became of an entry. The place in this list is what the database keeps. */
export const ENTRY_STATUSES = ['received', 'queued', 'sent', 'dropped'] as const;

/** Longest text of an entry, bytes of UTF-8. */
export const MAX_TEXT_BYTES: number = 64 * 1024;
/** Longest note of a request, characters. */
export const MAX_REQUEST_NOTE_CHARS = 280;
/** Bytes of the id of an entry. */
export const ENTRY_ID_BYTES = 16;
/** Bytes of a stream id. */
export const STREAM_ID_BYTES = 16;
/** How long a request waits for its answer, milliseconds. */
export const REQUEST_LIFE_MS: number = 72 * 3600 * 1000;
