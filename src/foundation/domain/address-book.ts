/** The address book of a node's user. */

/** Maximum number of labels, and of favorites. */
export const MAX_BOOK_ENTRIES = 10_000;
/** Longest label, characters. */
export const MAX_ALIAS_CHARS = 64;
