/** Publishing and finding agents. Limits of records: records/types.ts. */
import { MAX_RECORDS_PER_KEY } from '../records/types.ts';

/** Default lifetime of a record, and the lifetime of endpoint records, seconds. */
export const RECORD_TTL_S = 3600;
/** Shortest lifetime that a user can choose, seconds. */
export const MIN_RECORD_TTL_S = 10;
/** Service names in one search or registration. */
export const MAX_NAMES_PER_CALL = 16;
/** Maximum number of results for one service name: the number of records that a key can have. */
export const MAX_PROVIDERS: number = MAX_RECORDS_PER_KEY;
/** Services that one agent may offer. */
export const MAX_SERVICES = 64;
/** `format` of a service name in a schema. */
export const SERVICE_NAME_FORMAT = 'service-name';
/** Nodes that should store a record. */
export const REPLICAS = 8;

/** The NAT types 0 to 4 of endpoint records. */
export const NAT_TYPES = ['unknown', 'public or full cone', 'restricted', 'port-restricted', 'symmetric'] as const;
/** The highest NAT type. */
export const MAX_NAT_TYPE: number = NAT_TYPES.length - 1;

/** The text for a `nat_type`. */
export function natLabel(natType: number): string {
  return NAT_TYPES[natType] ?? NAT_TYPES[0];
}

/**
 * Port translation of the NAT. `open`: none, although there may be a firewall. `cone`: the same external port for all
 * peers. `symmetric`: a different port for each. `unknown`: reported by fewer than two peers.
 */
export const NAT_MAPPINGS = ['unknown', 'open', 'cone', 'symmetric'] as const;
export type NatMapping = (typeof NAT_MAPPINGS)[number];

/**
 * State of port mapping. `off`: not needed or turned off. `searching`: the first attempt. `none`: no router supports
 * it. `double_nat`: the router has no public address.
 */
export const PORT_MAPPING_STATES = ['off', 'searching', 'none', 'mapped', 'double_nat'] as const;
export type PortMappingState = (typeof PORT_MAPPING_STATES)[number];

/** Pattern of the name of a private network. */
export const NETWORK_NAME: RegExp = /^[a-z0-9][a-z0-9._-]{0,62}$/;

// Catalogs for other programs: AI Catalog 1.0 and Agentic Resource Discovery 0.9.

/** Default page size of a search, from the specification. */
export const SEARCH_PAGE_DEFAULT = 10;
/** Largest page of a search, from the specification. */
export const MAX_SEARCH_PAGE = 100;
/** Longest text of a search, characters. */
export const MAX_SEARCH_TEXT_CHARS = 1000;
/** Fields of a filter, and values of each. */
export const MAX_FILTER_FIELDS = 16;
export const MAX_FILTER_VALUES = 32;
/** Local agents in the catalog, in order of registration. */
export const MAX_CATALOG_AGENTS = 1000;
/** Score of a complete match, from the specification. */
export const MAX_SCORE = 100;
