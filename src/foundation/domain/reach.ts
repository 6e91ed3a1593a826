/** How nodes reach each other, as people are told of it. Rules: docs/reach.md. */

/** What a connection with another node is there for: everything, or being helped by that node too. */
export const LINK_USES = ['all', 'helper'] as const;
export type LinkUse = (typeof LINK_USES)[number];

/** Protocols by which routers are asked for ports, in the order in which they are tried. */
export const MAPPING_PROTOCOLS = ['pcp', 'nat-pmp', 'upnp'] as const;
export type MappingProtocol = (typeof MAPPING_PROTOCOLS)[number];

/** Where an own address is known from: said by the owner, mapped by a router, seen by others, had by an interface. */
export const ADDRESS_SOURCES = ['configured', 'mapped', 'observed', 'interface', 'lan'] as const;
export type AddressSource = (typeof ADDRESS_SOURCES)[number];

/** Who reached us from outside, unasked: nodes of the record network, a helper. */
export const ADDRESS_VERIFIERS = ['peers', 'helper'] as const;
export type AddressVerifier = (typeof ADDRESS_VERIFIERS)[number];

/**
 * Why the way to a node is no direct one: a way without a relay may still be found; the node names nobody who could
 * introduce us; both nodes have another port for each other node; one has, and too few helpers see it; no way could be
 * punched though the NATs allow it; nothing leads there.
 */
export const NOT_DIRECT_REASONS = [
  'looking',
  'no_helpers',
  'both_symmetric',
  'one_helper',
  'punching_failed',
  'not_reached',
] as const;
export type NotDirectReason = (typeof NOT_DIRECT_REASONS)[number];

/** Probes of one ping, unless it says otherwise, and at most. */
export const PING_COUNT = 4;
export const MAX_PING_COUNT = 16;
/** From one probe to the next, milliseconds. */
export const PING_INTERVAL_MS = 1000;
export const MIN_PING_INTERVAL_MS = 100;
export const MAX_PING_INTERVAL_MS = 5000;
/** How long the connection, and each answer, is waited for unless the ping says otherwise, and at most: milliseconds. */
export const PING_TIMEOUT_MS = 15_000;
export const MAX_PING_TIMEOUT_MS = 30_000;

/** For how long traffic is remembered minute by minute, hours. */
export const TRAFFIC_HOURS = 24;
