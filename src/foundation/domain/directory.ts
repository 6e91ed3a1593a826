/** What agents publish, and how others find it. Limits of records themselves: records/types.ts. */
import { MAX_RECORDS_PER_KEY } from '../records/types.ts';

/** Seconds that a record lives, unless its publisher says otherwise; endpoint records always. */
export const RECORD_TTL_S = 3600;
/** Shortest life of a record that a user asks for, seconds. */
export const MIN_RECORD_TTL_S = 10;
/** Service names in one search, or in one offer. */
export const MAX_NAMES_PER_CALL = 16;
/** Providers of one service name that a search gives: as many as a key holds. */
export const MAX_PROVIDERS: number = MAX_RECORDS_PER_KEY;
/** Services that one agent may offer. */
export const MAX_SERVICES = 64;
/** How a schema says that a text is the name of a service. */
export const SERVICE_NAME_FORMAT = 'service-name';
/** Nodes that should keep a record. */
export const REPLICAS = 8;

/** What the NAT types 0 to 4 of endpoint records mean. */
export const NAT_TYPES = ['unknown', 'public or full cone', 'restricted', 'port-restricted', 'symmetric'] as const;
/** The last of them. */
export const MAX_NAT_TYPE: number = NAT_TYPES.length - 1;

/** What a `nat_type` means. */
export function natLabel(natType: number): string {
  return NAT_TYPES[natType] ?? NAT_TYPES[0];
}

/**
 * What is known of the translation of a port. `open`: none, though a firewall may be there. `cone`: one outer port
 * whomever we write to. `symmetric`: another one for each. `unknown`: fewer than two others have said anything.
 */
export const NAT_MAPPINGS = ['unknown', 'open', 'cone', 'symmetric'] as const;
export type NatMapping = (typeof NAT_MAPPINGS)[number];

/**
 * What is known of ports of the router: `off` nobody is asked, as nothing is to be translated or the owner said no;
 * `searching` the first time; `none` no router grants any; `double_nat` granted by a router that has no address of the
 * Internet itself.
 */
export const PORT_MAPPING_STATES = ['off', 'searching', 'none', 'mapped', 'double_nat'] as const;
export type PortMappingState = (typeof PORT_MAPPING_STATES)[number];

/** What a private network may be called. */
export const NETWORK_NAME: RegExp = /^[a-z0-9][a-z0-9._-]{0,62}$/;
