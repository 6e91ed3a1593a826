/** Notes: sealed messages to agents that may be offline. Rules: docs/notes-and-chat.md. */

/** Kinds of bodies. Applications define all other numbers. */
export const NOTE_TYPE = { text: 3, invitation: 0x10, fileOffer: 0x11, fileNews: 0x12 } as const;

/** Largest `msg_type`. */
export const MAX_NOTE_TYPE = 0xffff_ffff;
/** Longest body of a note, bytes. */
export const MAX_NOTE_BODY_BYTES: number = 32 * 1024;
/** Maximum number of notes in one response of a poll or a list. */
export const MAX_NOTES_PAGE = 500;
/** Maximum number of bytes of bodies in one response. */
export const MAX_NOTES_PAGE_BYTES: number = 8 * 1024 * 1024;
/** Maximum number of notes in a mailbox. */
export const MAX_MAILBOX_NOTES = 1000;
/** Maximum number of stored keys for notes of one agent. The oldest ones are deleted first. */
export const MAX_KEPT_NOTE_KEYS = 32;
/** Size of a note ID, bytes. */
export const MESSAGE_ID_BYTES = 32;
/** Size of a private key that opens notes, bytes. */
export const X25519_PRIVATE_KEY_BYTES = 32;

/** Maximum number of notes in the outbox of one agent. No other node has them yet. */
export const MAX_QUEUED_NOTES = 1000;

/**
 * Results of a handler for notes of a type. `full`: no room now; the copies in the network remain. `dropped`: the note
 * had no effect and never will. The sender receives `kept`, and the ID is not stored, because IDs cost nothing.
 */
export type NoteOutcome = 'kept' | 'full' | 'dropped';
/** Read notes of one agent that are stored. */
export const MAX_READ_NOTES = 100;
