/** Local addresses of remote agents. */

/** Maximum number of local addresses of one daemon. */
export const MAX_ORIGINS = 64;
