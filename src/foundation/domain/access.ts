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

/** What access lists say of a caller; `secret`: allowed where it presents one of the subject's secrets. */
export const ACCESS_DECISIONS = ['allow', 'deny', 'secret'] as const;
export type AccessDecision = (typeof ACCESS_DECISIONS)[number];

/** What a caller asks an agent for: an answer of its service, a connection with it, a file. */
export const CALL_KINDS = ['call', 'tunnel', 'object'] as const;
export type CallKind = (typeof CALL_KINDS)[number];
/** Why a caller was not let in: by the access list, for guessing or asking too often, or as nothing is bound that takes it. */
export const CALL_REFUSALS = ['access_denied', 'rate_limited', 'no_inbound', 'tunnels_only'] as const;
export type CallRefusal = (typeof CALL_REFUSALS)[number];
/** Callers that are remembered of one agent. */
export const MAX_CALLERS = 256;
