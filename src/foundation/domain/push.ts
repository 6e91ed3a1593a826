/** Webhooks of local programs that remote agents call through svcd. Rules: docs/push.md. */

/** Webhooks registered through one local address. One more replaces the webhook that is unused for longest. */
export const MAX_WEBHOOKS_PER_ORIGIN = 1024;
/** A webhook expires after this time without use, milliseconds. */
export const WEBHOOK_LIFE_MS: number = 30 * 24 * 3600 * 1000;
/** Longest URL of a webhook, characters. */
export const MAX_WEBHOOK_CHARS = 2048;
/** Random bytes in the name of a webhook, which follows the mailbox URL. */
export const WEBHOOK_NAME_BYTES = 8;

/** Mailboxes for remote webhooks: one for each local agent and caller. */
export const MAX_PUSH_BOXES = 1024;
/** Mailboxes for callers without an allow entry. */
export const MAX_PUSH_BOXES_OF_STRANGERS = 512;
/** Mailboxes for strangers at one IPv4 address or IPv6 /64. */
export const MAX_PUSH_BOXES_PER_SOURCE = 64;
/** Mailboxes for strangers in one IPv4 /24 or IPv6 /48. */
export const MAX_PUSH_BOXES_PER_NETWORK = 128;
/** A mailbox expires after this time without a renewal by its caller, milliseconds. */
export const PUSH_BOX_LIFE_MS: number = 14 * 24 * 3600 * 1000;
/** A caller with webhooks renews the mailbox at this interval, milliseconds. */
export const PUSH_BOX_RENEW_MS: number = 24 * 3600 * 1000;
/** Random bytes in a mailbox URL. */
export const PUSH_BOX_TOKEN_BYTES = 32;

/** Largest body of a notification, bytes. */
export const MAX_NOTIFICATION_BYTES: number = 1024 * 1024;
/** Headers of a notification. */
export const MAX_NOTIFICATION_HEADERS = 32;
/** All headers of a notification together, characters. */
export const MAX_NOTIFICATION_HEADER_CHARS = 8192;
/** Size of the ID that the called side gives a notification, bytes. */
export const NOTIFICATION_ID_BYTES = 16;
/** Each side stores an undelivered notification for this time, milliseconds. */
export const NOTIFICATION_LIFE_MS: number = 7 * 24 * 3600 * 1000;
/** IDs of delivered notifications are stored for this time, milliseconds: longer than they are sent again. */
export const RECEIVED_IDS_LIFE_MS: number = NOTIFICATION_LIFE_MS + 24 * 3600 * 1000;

/** Queued notifications of one webhook. */
export const MAX_QUEUED_PER_WEBHOOK = 1024;
/** Queued notifications between a local and a remote agent. Many webhooks of one pair leave room for other pairs. */
export const MAX_QUEUED_PER_PEER = 2048;
/** Bytes of queued notifications between a local and a remote agent. */
export const MAX_QUEUED_BYTES_PER_PEER: number = 16 * 1024 * 1024;
/** Queued notifications on one side in all. */
export const MAX_QUEUED_NOTIFICATIONS = 16_384;
/** Bytes of queued notifications on one side in all. */
export const MAX_QUEUED_NOTIFICATION_BYTES: number = 128 * 1024 * 1024;
/** The part of both limits for the strangers of one source, of one network, and for all strangers. */
export const SOURCE_WAITING_PART: number = 1 / 8;
export const NETWORK_WAITING_PART: number = 1 / 4;
export const STRANGERS_WAITING_PART: number = 1 / 2;
/** Stored IDs of delivered notifications for one local address. */
export const MAX_RECEIVED_IDS = 8192;
/** Most webhooks in a list, most recently used first. */
export const MAX_SHOWN_WEBHOOKS = 1024;
