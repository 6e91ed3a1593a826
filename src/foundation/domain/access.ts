/** Access lists, which decide who may call an agent. Rules: docs/access-control.md. */

/** The default for callers without an entry. */
export const ACCESS_POLICIES = ['public', 'deny', 'ask'] as const;
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

/**
 * Decisions of an access list. `secret`: the caller is allowed if it presents a secret of the subject. `ask`: the owner
 * decides.
 */
export const ACCESS_DECISIONS = ['allow', 'deny', 'secret', 'ask'] as const;
export type AccessDecision = (typeof ACCESS_DECISIONS)[number];

/** Requests to an agent: a call, a connection, an object. */
export const CALL_KINDS = ['call', 'tunnel', 'object'] as const;
export type CallKind = (typeof CALL_KINDS)[number];
/** Reasons for a refusal: the access list, too many attempts, or no matching service. */
export const CALL_REFUSALS = ['access_denied', 'rate_limited', 'no_inbound', 'tunnels_only'] as const;
export type CallRefusal = (typeof CALL_REFUSALS)[number];
/** Callers in the list of one agent. */
export const MAX_CALLERS = 256;

/** Kinds of requests for access. */
export const ASK_KINDS = ['call', 'tunnel'] as const;
export type AskKind = (typeof ASK_KINDS)[number];
/** Longest note of a caller to the owner, bytes of UTF-8. */
export const MAX_ACCESS_NOTE_BYTES = 280;
/** Longest description in a request, such as a method and a path, bytes of UTF-8. */
export const MAX_ASKED_BYTES = 200;
/** Longest name of an MCP tool, characters. */
export const MAX_TOOL_NAME_CHARS = 128;
/** Names of MCP tools in requests and access lists. They cannot carry a sentence. */
export const TOOL_NAME_PATTERN = '^[A-Za-z0-9_./-]+$';
const TOOL_NAME = new RegExp(TOOL_NAME_PATTERN);

export function isToolName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOOL_NAME_CHARS && TOOL_NAME.test(value);
}

/** MCP tools that one entry can allow. */
export const MAX_ENTRY_TOOLS = 64;
/** Longest wait of a caller for the owner's decision, seconds. */
export const MAX_DECISION_WAIT_S = 60;
/** Requests of all callers that are stored. */
export const MAX_ACCESS_REQUESTS = 2000;
