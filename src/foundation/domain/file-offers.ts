/** File offers from one agent to another. Rules: docs/files.md. */

/** States of an offer. */
export const FILE_OFFER_STATES = ['open', 'taken', 'declined', 'withdrawn', 'expired'] as const;
export type FileOfferState = (typeof FILE_OFFER_STATES)[number];
/** `in`: offered to a local agent. `out`: offered by a local agent. */
export const FILE_OFFER_DIRECTIONS = ['in', 'out'] as const;
export type FileOfferDirection = (typeof FILE_OFFER_DIRECTIONS)[number];

/** An offer expires after this time, milliseconds. */
export const FILE_OFFER_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** Size of an offer ID, bytes. */
export const FILE_OFFER_ID_BYTES = 8;
/** Longest message of an offer, characters. */
export const MAX_OFFER_MESSAGE_CHARS = 280;
/** Open offers to one agent. */
export const MAX_OPEN_OFFERS = 200;
/** Open offers to one agent from senders without a label or an allow entry. */
export const MAX_OPEN_OFFERS_OF_STRANGERS = 100;
/** Open offers to one agent from one sender. */
export const MAX_OPEN_OFFERS_PER_SENDER = 20;
/** Open offers by one agent. */
export const MAX_OPEN_OFFERS_MADE = 200;
/** Ended offers of an agent that are still listed. */
export const MAX_SETTLED_OFFERS = 200;
/** Largest offered file, bytes. */
export const MAX_OFFERED_BYTES: number = 1024 ** 4;
