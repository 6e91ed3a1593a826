/** Local addresses of remote agents. */

/** Most local addresses of one daemon. */
export const MAX_ORIGINS = 64;
