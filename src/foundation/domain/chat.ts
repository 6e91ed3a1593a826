/** Chat between two agents that accepted each other. Rules: docs/notes-and-chat.md. */

/** Relationships of a local agent and a peer. */
export const CONTACT_STATES = ['friends', 'out_pending', 'in_pending', 'blocked'] as const;
/** `none`: a conversation that ended or never started. */
export const PAIR_STATES = ['none', ...CONTACT_STATES] as const;
export type PairState = (typeof PAIR_STATES)[number];
/** Messages that the peer has not confirmed yet. */
export const CONTROLS = ['request', 'accept', 'gone'] as const;
export type Control = (typeof CONTROLS)[number];
/** States of an entry. The database stores the position in this list. */
export const ENTRY_STATUSES = ['received', 'queued', 'sent', 'dropped'] as const;

/** Longest text of an entry, bytes of UTF-8. */
export const MAX_TEXT_BYTES: number = 64 * 1024;
/** Longest note of a request, characters. */
export const MAX_REQUEST_NOTE_CHARS = 280;
/** Size of an entry ID, bytes. */
export const ENTRY_ID_BYTES = 16;
/** Size of a stream ID, bytes. */
export const STREAM_ID_BYTES = 16;
/** A chat request expires after this time, milliseconds. */
export const REQUEST_LIFE_MS: number = 72 * 3600 * 1000;
