/** Updates of svcd itself. */

/** What is under way, or how the last update or look ended. */
export const UPDATE_STATES = ['idle', 'checking', 'applying', 'ok', 'failed', 'rolled_back'] as const;
export type UpdateState = (typeof UPDATE_STATES)[number];
