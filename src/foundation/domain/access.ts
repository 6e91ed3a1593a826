/** Access lists, which decide who may call an agent. Rules: docs/access-control.md. */

/** The default for callers without an entry. */
export const ACCESS_POLICIES = ['public', 'deny'] as const;
export type AccessPolicy = (typeof ACCESS_POLICIES)[number];
/** The two lists of a subject. */
export const ACCESS_LISTS = ['allow', 'deny'] as const;
export type AccessListName = (typeof ACCESS_LISTS)[number];

/** Entries of one list. */
export const MAX_LIST_ENTRIES = 1000;
/** Shortest secret that a user may choose, characters. */
export const MIN_SECRET_CHARS = 6;
/** Longest secret of a list, and longest accepted attempt, characters. */
export const MAX_SECRET_CHARS = 256;
/** Longest access token that a caller may send to a remote agent, characters. */
export const MAX_ACCESS_TOKEN_CHARS = 512;
/** Longest label of an entry, characters. */
export const MAX_LABEL_CHARS = 64;
/** The salt of a subject, bytes. */
export const SECRET_SALT_BYTES = 16;
/** The stored hash of a secret, bytes. */
export const SECRET_HASH_BYTES = 32;

/** Decisions of an access list. `secret`: the caller is allowed if it presents a secret of the subject. */
export const ACCESS_DECISIONS = ['allow', 'deny', 'secret'] as const;
export type AccessDecision = (typeof ACCESS_DECISIONS)[number];

/** Requests to an agent: a call, a connection, an object. */
export const CALL_KINDS = ['call', 'tunnel', 'object'] as const;
export type CallKind = (typeof CALL_KINDS)[number];
/** Reasons for a refusal: the access list, too many attempts, or no matching service. */
export const CALL_REFUSALS = ['access_denied', 'rate_limited', 'no_inbound', 'tunnels_only'] as const;
export type CallRefusal = (typeof CALL_REFUSALS)[number];
/** Callers in the list of one agent. */
export const MAX_CALLERS = 256;
