/** Notes: sealed messages to agents that need not be there. Rules: docs/notes-and-chat.md. */

/** What the body of a note is; any other number is the applications' own. */
export const NOTE_TYPE = { text: 3, invitation: 0x10, fileOffer: 0x11, fileNews: 0x12 } as const;

/** Largest `msg_type`. */
export const MAX_NOTE_TYPE = 0xffff_ffff;
/** Longest body of a note, bytes. */
export const MAX_NOTE_BODY_BYTES: number = 32 * 1024;
/** Notes of one answer, to a poll or a list. */
export const MAX_NOTES_PAGE = 500;
/** Bodies in one answer together, bytes. */
export const MAX_NOTES_PAGE_BYTES: number = 8 * 1024 * 1024;
/** Notes that wait for one agent. */
export const MAX_MAILBOX_NOTES = 1000;
/** Keys for notes that are kept of an agent: the oldest ones go first. */
export const MAX_KEPT_NOTE_KEYS = 32;
/** The id of a note, bytes. */
export const MESSAGE_ID_BYTES = 32;
/** The private half of a key that opens notes, bytes. */
export const X25519_PRIVATE_KEY_BYTES = 32;

/** Notes of one agent that are queued because no other node has them yet. */
export const MAX_QUEUED_NOTES = 1000;

/**
 * What became of a note whose type has a taker. `full`: there is no room for it now; its copies stay on the network.
 * `dropped`: it changed nothing and never will. Its sender hears `kept`, and its id is not remembered: ids are free.
 */
export type NoteOutcome = 'kept' | 'full' | 'dropped';
