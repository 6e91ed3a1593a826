/** Objects: bytes that are named by their hash. Rules: docs/objects.md. */

/** What an agent says when it is asked for an object. */
export const HOLDER_STATUSES = ['available', 'denied', 'not_found', 'gone', 'unreachable'] as const;
export type HolderStatus = (typeof HOLDER_STATUSES)[number];

/** The SHA-256 of an object, bytes. */
export const OBJECT_ID_BYTES = 32;
/** Longest path of a file, characters. */
export const MAX_FILE_PATH_CHARS = 4096;
/** Longest name of a file, bytes of UTF-8: what file systems take. */
export const MAX_FILE_NAME_BYTES = 255;
/** Agents that are known, and asked, as holders of one object. */
export const MAX_HOLDERS_PER_OBJECT = 16;
