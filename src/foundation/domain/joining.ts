/** Coming into a network: what its declarations and its rules share. */

/**
 * From where an invitation can be used: `anywhere` strangers have reached this node; `helped` they come by other nodes;
 * `unproven` this node knows an address of the Internet at which nobody has reached it yet; `lan` from its own network
 * only; `machine` from this machine only.
 */
export const INVITATION_REACHES = ['anywhere', 'helped', 'unproven', 'lan', 'machine'] as const;
export type InvitationReach = (typeof INVITATION_REACHES)[number];

/**
 * How the last attempt with a contact ended: `untried`; `unresolved` its name has no address; `ipv6` it has no IPv4
 * address, which nodes of the record network need; `silent` no answer; `other_key` a node answers that does not prove
 * the key; `met`.
 */
export const MEETING_STATES = ['untried', 'unresolved', 'ipv6', 'silent', 'other_key', 'met'] as const;
export type MeetingState = (typeof MEETING_STATES)[number];
/** How asking a node for its key can end. */
export type ProofState = Extract<MeetingState, 'met' | 'silent' | 'other_key'>;

/** Most nodes that an invitation names. */
export const MAX_INVITATION_CONTACTS = 8;
/** Longest invitation, characters. */
export const MAX_INVITATION_CHARS = 4096;

/** What to do where no other node is known. */
export const NO_NODE_KNOWN =
  'Run "svc invite" on another machine with svcd and "svc join <invitation>" here, or start svcd with --bootstrap and the address of a node. Nodes on one LAN find each other unless mdns is off.';
