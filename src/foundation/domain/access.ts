/** Access lists: who may call an agent. Rules: docs/access-control.md. */

/** What holds for those whom no entry names. */
export const ACCESS_POLICIES = ['public', 'deny'] as const;
export type AccessPolicy = (typeof ACCESS_POLICIES)[number];
/** The two lists of a subject. */
export const ACCESS_LISTS = ['allow', 'deny'] as const;
export type AccessListName = (typeof ACCESS_LISTS)[number];

/** Entries of one list. */
export const MAX_LIST_ENTRIES = 1000;
/** Shortest secret that a user may choose, characters. */
export const MIN_SECRET_CHARS = 6;
/** Longest secret of a list, and longest that is looked at, characters. */
export const MAX_SECRET_CHARS = 256;
/** Longest credential that a caller may hand on to a remote agent, characters. */
export const MAX_ACCESS_TOKEN_CHARS = 512;
/** Longest label of an entry, characters. */
export const MAX_LABEL_CHARS = 64;
/** The salt of a subject, bytes. */
export const SECRET_SALT_BYTES = 16;
/** The stored hash of a secret, bytes. */
export const SECRET_HASH_BYTES = 32;
