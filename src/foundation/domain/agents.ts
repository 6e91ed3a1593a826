/** Local agents. */

/** Kinds of AIDs: a native key, or the key of a wallet. */
export const AID_SCHEMES = ['native', 'paralism', 'ethereum'] as const;
export type AidScheme = (typeof AID_SCHEMES)[number];

/** A delegation that expires within this time gets a warning, milliseconds. */
export const DELEGATION_WARN_MS = 7 * 86_400_000;
/** Longest text of a bound service, characters. */
export const MAX_SERVICE_ADDRESS_CHARS = 300;
/** Longest AID of any scheme, characters. */
export const MAX_AID_CHARS = 100;
/** `format` of an AID in a schema: surfaces convert it to canonical form. */
export const AID_FORMAT = 'aid';

/** Maximum number of labels, and of favorites. */
export const MAX_BOOK_ENTRIES = 10_000;
/** Longest label, characters. */
export const MAX_ALIAS_CHARS = 64;
/** Maximum number of labels of one agent. */
export const MAX_LABELS_PER_AGENT = 16;

/**
 * Time for the program of a temporary agent to follow its events, after the registration, the end of its stream or a start
 * of the daemon, milliseconds.
 */
export const LEASE_GRACE_MS = 5000;
