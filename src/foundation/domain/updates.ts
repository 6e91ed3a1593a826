/** Updates of svcd. */

/** Current step, or result of the last update or check. */
export const UPDATE_STATES = ['idle', 'checking', 'applying', 'ok', 'failed', 'rolled_back'] as const;
export type UpdateState = (typeof UPDATE_STATES)[number];
