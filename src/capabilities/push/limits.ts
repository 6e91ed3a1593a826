/** Limits of push notifications that both sides share. */

/** Notifications per second, and in a burst, from one agent to another. */
export const NOTIFICATIONS_PER_S = 100;
export const NOTIFICATIONS_BURST = 2000;
/** Time limit for the response of a webhook or a daemon to a notification, in milliseconds. */
export const PUSH_RESPONSE_MS = 30_000;
/** Interval for removing old entries, in milliseconds. */
export const PUSH_CLEANUP_MS: number = 3600 * 1000;
