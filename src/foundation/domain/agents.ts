/** Local agents. */

/** What an AID is made from: a key of ours, or that of a wallet. */
export const AID_SCHEMES = ['native', 'paralism', 'ethereum'] as const;
export type AidScheme = (typeof AID_SCHEMES)[number];

/** Seconds without a heartbeat after which an agent without a service that answers is renewed no more. */
export const HEARTBEAT_LIFE_S = 3600;
/** A delegation that ends sooner than this is worth a word, milliseconds: a week. */
export const DELEGATION_WARN_MS = 7 * 86_400_000;
/** Longest text of a bound service, characters. */
export const MAX_SERVICE_ADDRESS_CHARS = 300;
/** Longest text that can be an AID, characters: no scheme has a longer one. */
export const MAX_AID_CHARS = 100;
/** `format` of a string that is an AID: surfaces bring such input into canonical form. */
export const AID_FORMAT = 'aid';
