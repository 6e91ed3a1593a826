/** Files that an agent offers to another one. Rules: docs/files.md. */

/** What became of an offer. */
export const FILE_OFFER_STATES = ['open', 'taken', 'declined', 'withdrawn', 'expired'] as const;
export type FileOfferState = (typeof FILE_OFFER_STATES)[number];
/** `in`: another agent offers it to one here; `out`: one here offers it. */
export const FILE_OFFER_DIRECTIONS = ['in', 'out'] as const;
export type FileOfferDirection = (typeof FILE_OFFER_DIRECTIONS)[number];

/** How long an offer stands, milliseconds. */
export const FILE_OFFER_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** The id of an offer, bytes. */
export const FILE_OFFER_ID_BYTES = 8;
/** Longest message that goes with an offer, characters. */
export const MAX_OFFER_MESSAGE_CHARS = 280;
/** Offers to one agent that are open at a time. */
export const MAX_OPEN_OFFERS = 200;
/** Of those, from agents that the owner has neither labelled nor let in by name. */
export const MAX_OPEN_OFFERS_OF_STRANGERS = 100;
/** Of those, from one sender. */
export const MAX_OPEN_OFFERS_PER_SENDER = 20;
/** Offers of one agent that are open at a time. */
export const MAX_OPEN_OFFERS_MADE = 200;
/** Offers of an agent that are over and still shown. */
export const MAX_SETTLED_OFFERS = 200;
/** Largest file that is offered, bytes. */
export const MAX_OFFERED_BYTES: number = 1024 ** 4;
