/** Webhooks of programs here that agents elsewhere call back through svcd. Rules: docs/push.md. */

/** Webhooks that are registered through one local address; the one unused for longest makes way for one more. */
export const MAX_WEBHOOKS_PER_ORIGIN = 1024;
/** How long a webhook stays registered after it was last named or called, milliseconds. */
export const WEBHOOK_LIFE_MS: number = 30 * 24 * 3600 * 1000;
/** Longest address of a webhook, characters. */
export const MAX_WEBHOOK_CHARS = 2048;
/** Random bytes in the name of a webhook, which stands behind the address of the mailbox. */
export const WEBHOOK_NAME_BYTES = 8;

/** Mailboxes for the webhooks of others: one for each agent here and each caller of it. */
export const MAX_PUSH_BOXES = 1024;
/** Of those, of callers whom the agent's owner has not let in by name. */
export const MAX_PUSH_BOXES_OF_STRANGERS = 512;
/** Of those, of the strangers at one IPv4 address or IPv6 /64. */
export const MAX_PUSH_BOXES_PER_SOURCE = 64;
/** The same in one IPv4 /24 or IPv6 /48. */
export const MAX_PUSH_BOXES_PER_NETWORK = 128;
/** How long a mailbox stands after its caller last asked for it, milliseconds. */
export const PUSH_BOX_LIFE_MS: number = 14 * 24 * 3600 * 1000;
/** How often a caller with webhooks asks anew for the mailbox, milliseconds. */
export const PUSH_BOX_RENEW_MS: number = 24 * 3600 * 1000;
/** Random bytes in the address of a mailbox. */
export const PUSH_BOX_TOKEN_BYTES = 32;

/** Largest body of a notification, bytes. */
export const MAX_NOTIFICATION_BYTES: number = 1024 * 1024;
/** Headers of a notification. */
export const MAX_NOTIFICATION_HEADERS = 32;
/** The headers of a notification together, characters. */
export const MAX_NOTIFICATION_HEADER_CHARS = 8192;
/** The name that the called side gives a notification, bytes. */
export const NOTIFICATION_ID_BYTES = 16;
/** How long a notification is kept on each side where the next step does not take it, milliseconds. */
export const NOTIFICATION_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** How long the names of notifications that a webhook has taken are remembered, milliseconds: longer than they are sent again. */
export const RECEIVED_IDS_LIFE_MS: number = NOTIFICATION_LIFE_MS + 24 * 3600 * 1000;

/** Notifications that wait for one webhook. */
export const MAX_QUEUED_PER_WEBHOOK = 1024;
/** Notifications that wait between one agent here and one elsewhere: many webhooks of one leave room for those of others. */
export const MAX_QUEUED_PER_PEER = 2048;
/** Bytes of the notifications that wait between one agent here and one elsewhere. */
export const MAX_QUEUED_BYTES_PER_PEER: number = 16 * 1024 * 1024;
/** Notifications that wait on one side in all. */
export const MAX_QUEUED_NOTIFICATIONS = 16_384;
/** Their bytes. */
export const MAX_QUEUED_NOTIFICATION_BYTES: number = 128 * 1024 * 1024;
/** The part of both that the strangers of one source may use, and all strangers together. */
export const SOURCE_WAITING_PART: number = 1 / 8;
export const STRANGERS_WAITING_PART: number = 1 / 2;
/** Names of notifications that are remembered for one local address once they were taken. */
export const MAX_RECEIVED_IDS = 8192;
/** Webhooks that are shown, those used last. */
export const MAX_SHOWN_WEBHOOKS = 1024;
