/** The MCP hub: the tools of other agents behind three tools. */

/** Kinds of tools: of an MCP server, or a skill of an A2A agent. */
export const HUB_TOOL_KINDS = ['mcp', 'a2a'] as const;
export type HubToolKind = (typeof HUB_TOOL_KINDS)[number];

/**
 * How the hub knows an agent. `book`: it has a label. `named`: the owner added it. `found`: a network search found it.
 * `removed`: the owner removed it.
 */
export const HUB_ORIGINS = ['book', 'named', 'found', 'removed'] as const;
export type HubOrigin = (typeof HUB_ORIGINS)[number];

/**
 * The result of the last request for tools. `new`: not requested yet. `ok`: the list is complete. `away`: the agent did
 * not answer. `denied`: it denies access. `none`: it has no MCP server and no A2A card.
 */
export const HUB_STATES = ['new', 'ok', 'away', 'denied', 'none'] as const;
export type HubState = (typeof HUB_STATES)[number];

/** Longest search text, characters. */
export const MAX_HUB_QUERY_CHARS = 400;
/** Results of a search, at most. */
export const MAX_HUB_RESULTS = 25;
/** Default number of results of a search. */
export const HUB_RESULTS_DEFAULT = 8;
/** Characters of all results of a search together, about a quarter as many tokens. */
export const MAX_HUB_RESULT_CHARS = 6_000;
/** Shortest reference to a tool, characters. */
export const MIN_HUB_REF_CHARS = 3;
/** Longest reference to a tool: the agent, "/" and the name of the tool. Characters. */
export const MAX_HUB_REF_CHARS = 240;
/** Longest name of a tool, characters. */
export const MAX_HUB_NAME_CHARS = 128;
/** Tools of one agent. Further ones are skipped. */
export const MAX_HUB_TOOLS_PER_AGENT = 256;
/** Largest definition of a tool, in bytes of canonical JSON. Larger ones are skipped. */
export const MAX_HUB_DEFINITION_BYTES: number = 16 * 1024;
/** Bytes of all definitions of one agent. Further ones are skipped. */
export const MAX_HUB_AGENT_BYTES: number = 512 * 1024;
/** Tools in the catalog. */
export const MAX_HUB_TOOLS = 20_000;
/** Bytes of all definitions in the catalog. */
export const MAX_HUB_BYTES: number = 64 * 1024 * 1024;
/** Part of these limits for agents that searches found, so that they leave room for the others. */
export const HUB_FOUND_PART = 0.25;
/** Agents that the owner added, for each local agent. */
export const MAX_HUB_NAMED = 256;
/** Agents without accepted tools that searches found, for each local agent. The oldest are removed first. */
export const MAX_HUB_FOUND = 64;
/** Labeled agents that the hub asks, for each local agent. */
export const MAX_HUB_BOOK = 1_000;
/**
 * Decisions about definitions of one agent that are kept, 32 bytes each. Beyond them, nothing is accepted without the
 * owner, who can decide again after removing the agent.
 */
export const MAX_HUB_DECISIONS = 4_096;
/** Largest arguments of a call, in bytes of JSON. */
export const MAX_HUB_ARGUMENT_BYTES: number = 1024 * 1024;
/** Largest result of a call, in bytes. */
export const MAX_HUB_ANSWER_BYTES: number = 8 * 1024 * 1024;
/** JSON values in a response of another agent, or in one event of its stream. */
export const MAX_HUB_ANSWER_VALUES = 100_000;
/** A call ends after this time without a progress message, in milliseconds. */
export const HUB_CALL_SILENCE_MS = 600_000;
/** Concurrent calls of the hub. */
export const MAX_HUB_CALLS = 64;
/** Characters of the ID of a held definition. With fewer, a server could find two definitions with one ID. */
export const HUB_CHANGE_ID_CHARS = 32;
