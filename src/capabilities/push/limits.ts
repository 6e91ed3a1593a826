/** Limits that both sides of push notifications have. */

/** Notifications that one agent may leave for another per second, and at once. */
export const NOTIFICATIONS_PER_S = 100;
export const NOTIFICATIONS_BURST = 2000;
/** Milliseconds that a webhook, or a daemon that is handed a notification, has to answer. */
export const PUSH_ANSWER_MS = 30_000;
/** Milliseconds between two looks at what is old. */
export const PUSH_TIDY_MS: number = 3600 * 1000;
