/** Reachability as users see it. Rules: docs/reach.md. */

/** Purposes of a connection: all traffic, or also help from that node. */
export const LINK_USES = ['all', 'helper'] as const;
export type LinkUse = (typeof LINK_USES)[number];

/** Protocols for port mappings, in the order of attempts. */
export const MAPPING_PROTOCOLS = ['pcp', 'nat-pmp', 'upnp'] as const;
export type MappingProtocol = (typeof MAPPING_PROTOCOLS)[number];

/** Sources of an own address: configuration, router, other nodes, interfaces. */
export const ADDRESS_SOURCES = ['configured', 'mapped', 'observed', 'interface', 'lan'] as const;
export type AddressSource = (typeof ADDRESS_SOURCES)[number];

/** How an address was verified from outside: by nodes of the record network, or by a helper. */
export const ADDRESS_VERIFIERS = ['peers', 'helper'] as const;
export type AddressVerifier = (typeof ADDRESS_VERIFIERS)[number];

/**
 * Why a connection is not direct. A direct path is still being searched; the node names no helper; both nodes have a
 * different port for each peer; UDP does not work here, so a helper carries it over TLS; one NAT has such ports, and too
 * few helpers see it; punching failed although the NATs allow it; or no path works.
 */
export const NOT_DIRECT_REASONS = [
  'looking',
  'no_helpers',
  'both_symmetric',
  'no_udp',
  'one_helper',
  'punching_failed',
  'not_reached',
] as const;
export type NotDirectReason = (typeof NOT_DIRECT_REASONS)[number];

/** Default and largest number of probes of one ping. */
export const PING_COUNT = 4;
export const MAX_PING_COUNT = 16;
/** Interval between two probes, milliseconds. */
export const PING_INTERVAL_MS = 1000;
export const MIN_PING_INTERVAL_MS = 100;
export const MAX_PING_INTERVAL_MS = 5000;
/** Default and longest wait for the connection, and for each response, milliseconds. */
export const PING_TIMEOUT_MS = 15_000;
export const MAX_PING_TIMEOUT_MS = 30_000;

/** Traffic is stored by minute for this many hours. */
export const TRAFFIC_HOURS = 24;
