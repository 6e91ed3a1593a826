/** Free disk space. */

/** With less free space the daemon fails soon, bytes. */
export const DISK_FAIL_BYTES: number = 50 * 2 ** 20;
/** With less free space there is a warning, bytes. */
export const DISK_WARN_BYTES: number = 500 * 2 ** 20;
