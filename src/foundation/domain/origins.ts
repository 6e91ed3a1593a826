/** Local addresses that are remote agents. */

/** Most of them at one daemon. */
export const MAX_ORIGINS = 64;
