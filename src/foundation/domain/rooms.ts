/** Rooms (groups, as users know them). Rules: docs/groups.md, format: docs/protocol-groups.md. */

/** What a member may do. */
export const ROLES = ['creator', 'admin', 'member'] as const;
export type Role = (typeof ROLES)[number];
/** Where an agent without a role stands in a room that it has a copy of. */
export const OUTSIDE_STATES = ['joining', 'left', 'removed'] as const;
/** How a local agent stands to a room. */
export const ROOM_STATES = ['member', ...OUTSIDE_STATES] as const;
export type RoomState = (typeof ROOM_STATES)[number];

/** Names of kinds of entries: those of applications as well as ours. */
export const KIND_PATTERN = '^[a-z][a-z0-9._-]{0,31}$';
/** Bytes of an entry id, a group id and a creator's nonce. */
export const HASH_BYTES = 32;
/** Bytes of a join secret. */
export const JOIN_SECRET_BYTES = 32;
/** Bytes of the name of a replica: a peer that read another one begins again. */
export const EPOCH_BYTES = 16;
/** Largest body of an entry, bytes. */
export const MAX_ENTRY_BODY_BYTES = 2048;
/** Agents that one entry mentions. */
export const MAX_MENTIONS = 64;
/** Longest reference, characters. */
export const MAX_REF_CHARS = 512;
/** Longest title, characters. */
export const MAX_TITLE_CHARS = 200;
/** Agents that a joiner remembers to ask. */
export const MAX_HINTS = 16;
/** Members of one room. */
export const MAX_MEMBERS = 1000;
/** Rooms that one agent is in, or joins. */
export const MAX_ROOMS = 1000;
/** Rooms that it left, or was removed from, of which its copy is kept: the newest ones. */
export const MAX_PAST_ROOMS = 1000;
/** Invitations that are kept for one agent. Those of strangers go first, and of these the ones of whoever sent most. */
export const MAX_INVITATIONS = 500;
/** Milliseconds for which an invitation is sent again. */
export const INVITATION_LIFE_MS: number = 7 * 24 * 3600_000;
/** Entries of one page. */
export const MAX_ENTRIES_PAGE = 50;
