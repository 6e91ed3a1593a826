/** Limits on queued notifications. Both sides use the same limits. */
import {
  MAX_QUEUED_BYTES_PER_PEER,
  MAX_QUEUED_NOTIFICATION_BYTES,
  MAX_QUEUED_NOTIFICATIONS,
  MAX_QUEUED_PER_PEER,
  MAX_QUEUED_PER_WEBHOOK,
  NETWORK_WAITING_PART,
  SOURCE_WAITING_PART,
  STRANGERS_WAITING_PART,
} from '../../foundation/domain/push.ts';
import type { WaitingSum } from '../../foundation/store/notification-row.ts';

/** Queued notifications: for one webhook, between two agents, and in total. */
interface QueuedSums {
  readonly webhook: WaitingSum;
  readonly peer: WaitingSum;
  readonly all: WaitingSum;
}

/** Queued notifications of strangers: from one source, from one network, and in total. */
interface StrangerSums {
  readonly source: WaitingSum;
  readonly network: WaitingSum;
  readonly strangers: WaitingSum;
}

/** True if one more notification of a stranger may be queued. */
export function mayQueueForStranger({ source, network, strangers }: StrangerSums, bytes: number): boolean {
  const fitsPart = (sum: WaitingSum, part: number): boolean =>
    fits(sum, bytes, part * MAX_QUEUED_NOTIFICATIONS, part * MAX_QUEUED_NOTIFICATION_BYTES);
  return (
    fitsPart(source, SOURCE_WAITING_PART) &&
    fitsPart(network, NETWORK_WAITING_PART) &&
    fitsPart(strangers, STRANGERS_WAITING_PART)
  );
}

/** True if one more notification of this size may be queued. */
export function mayQueue({ webhook, peer, all }: QueuedSums, bytes: number): boolean {
  return (
    webhook.count < MAX_QUEUED_PER_WEBHOOK &&
    fits(peer, bytes, MAX_QUEUED_PER_PEER, MAX_QUEUED_BYTES_PER_PEER) &&
    fits(all, bytes, MAX_QUEUED_NOTIFICATIONS, MAX_QUEUED_NOTIFICATION_BYTES)
  );
}

function fits({ count, bytes: held }: WaitingSum, bytes: number, maxCount: number, maxBytes: number): boolean {
  return count < maxCount && held + bytes <= maxBytes;
}

// Limits of push notifications that both sides share.

/** Notifications per second, and in a burst, from one agent to another. */
export const NOTIFICATIONS_PER_S = 100;
export const NOTIFICATIONS_BURST = 2000;
/** Time limit for the response of a webhook or a daemon to a notification, in milliseconds. */
export const PUSH_RESPONSE_MS = 30_000;
/** Interval for removing old entries, in milliseconds. */
export const PUSH_CLEANUP_MS: number = 3600 * 1000;
