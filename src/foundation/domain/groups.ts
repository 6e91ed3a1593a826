/** Groups. Rules: docs/groups.md, format: docs/protocol-groups.md. */

/** Roles of a member. */
export const ROLES = ['creator', 'admin', 'member'] as const;
export type Role = (typeof ROLES)[number];
/** States of an agent that has a copy of a group, but no role in it. */
export const OUTSIDE_STATES = ['joining', 'left', 'removed'] as const;
/** States of a local agent in a group. */
export const GROUP_STATES = ['member', ...OUTSIDE_STATES] as const;
export type GroupState = (typeof GROUP_STATES)[number];

/** Pattern of the kind of an entry. */
export const KIND_PATTERN = '^[a-z][a-z0-9._-]{0,31}$';
/** Size of an entry ID, a group ID and a creator's nonce, bytes. */
export const HASH_BYTES = 32;
/** Size of a join secret, bytes. */
export const JOIN_SECRET_BYTES = 32;
/** Size of the name of a replica, bytes. A peer that knows another name starts again. */
export const EPOCH_BYTES = 16;
/** Largest body of an entry, bytes. */
export const MAX_ENTRY_BODY_BYTES = 2048;
/** Maximum number of agents that one entry mentions. */
export const MAX_MENTIONS = 64;
/** Longest reference, characters. */
export const MAX_REF_CHARS = 512;
/** Longest title, characters. */
export const MAX_TITLE_CHARS = 200;
/** Agents that a joining agent can try. */
export const MAX_HINTS = 16;
/** Maximum number of members of a group. */
export const MAX_MEMBERS = 1000;
/** Maximum number of groups of one agent, including groups that it is joining. */
export const MAX_GROUPS_PER_AGENT = 1000;
/** Copies of groups that an agent left or was removed from. The oldest ones are deleted first. */
export const MAX_PAST_GROUPS = 1000;
/**
 * Invitations of one agent. If there are more, invitations of strangers are deleted first, from the stranger with most
 * invitations.
 */
export const MAX_INVITATIONS = 500;
/** An invitation is repeated for this time, milliseconds. */
export const INVITATION_LIFE_MS: number = 7 * 24 * 3600_000;
/** Entries of one page. */
export const MAX_ENTRIES_PAGE = 50;
