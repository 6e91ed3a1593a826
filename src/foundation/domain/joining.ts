/** Joining a network: values shared by the operations and the capability. */

/**
 * Scope of an invitation. `anywhere`: strangers have reached this node. `helped`: through other nodes. `unproven`: this
 * node has a public address that no node has reached yet. `lan`: its own network only. `machine`: this machine only.
 */
export const INVITATION_REACHES = ['anywhere', 'helped', 'unproven', 'lan', 'machine'] as const;
export type InvitationReach = (typeof INVITATION_REACHES)[number];

/**
 * Result of the last attempt with a contact. `unresolved`: its name has no address. `ipv6`: no IPv4 address, which the
 * record network requires. `silent`: no answer. `other_key`: the node did not prove the key. `met`: it answered.
 */
export const MEETING_STATES = ['untried', 'unresolved', 'ipv6', 'silent', 'other_key', 'met'] as const;
export type MeetingState = (typeof MEETING_STATES)[number];
/** Results of requesting a node key. */
export type ProofState = Extract<MeetingState, 'met' | 'silent' | 'other_key'>;

/** Maximum number of nodes in an invitation. */
export const MAX_INVITATION_CONTACTS = 8;
/** Longest invitation, characters. */
export const MAX_INVITATION_CHARS = 4096;

/** The hint if no other node is known. */
export const NO_NODE_KNOWN =
  'Run "svc invite" on another machine with svcd and "svc join <invitation>" here, or start svcd with --bootstrap and the address of a node. Nodes on one LAN find each other unless mdns is off.';
