/** The address book of a node's user. */

/** Most aliases, and most favourites. */
export const MAX_BOOK_ENTRIES = 10_000;
/** Longest alias, characters. */
export const MAX_ALIAS_CHARS = 64;
