/** Whether one more notification may wait: the same limits hold on both sides. */
import {
  MAX_QUEUED_BYTES_PER_PEER,
  MAX_QUEUED_NOTIFICATION_BYTES,
  MAX_QUEUED_NOTIFICATIONS,
  MAX_QUEUED_PER_PEER,
  MAX_QUEUED_PER_WEBHOOK,
  SOURCE_WAITING_PART,
  STRANGERS_WAITING_PART,
} from '../../foundation/domain/push.ts';
import type { WaitingSum } from '../../foundation/store/notification-row.ts';

/** What waits already: for one webhook, between two agents, and in all. */
export interface WaitingSums {
  readonly webhook: WaitingSum;
  readonly peer: WaitingSum;
  readonly all: WaitingSum;
}

/** What waits for strangers: of one source, and of all. */
export interface StrangersSums {
  readonly source: WaitingSum;
  readonly strangers: WaitingSum;
}

/** True if one more notification may wait for a caller that the owner did not name. */
export function mayWaitForStranger({ source, strangers }: StrangersSums, bytes: number): boolean {
  const fitsPart = (sum: WaitingSum, part: number): boolean =>
    fits(sum, bytes, part * MAX_QUEUED_NOTIFICATIONS, part * MAX_QUEUED_NOTIFICATION_BYTES);
  return fitsPart(source, SOURCE_WAITING_PART) && fitsPart(strangers, STRANGERS_WAITING_PART);
}

/** True where one of so many bytes may wait too. */
export function mayWait({ webhook, peer, all }: WaitingSums, bytes: number): boolean {
  return (
    webhook.count < MAX_QUEUED_PER_WEBHOOK &&
    fits(peer, bytes, MAX_QUEUED_PER_PEER, MAX_QUEUED_BYTES_PER_PEER) &&
    fits(all, bytes, MAX_QUEUED_NOTIFICATIONS, MAX_QUEUED_NOTIFICATION_BYTES)
  );
}

function fits({ count, bytes: held }: WaitingSum, bytes: number, maxCount: number, maxBytes: number): boolean {
  return count < maxCount && held + bytes <= maxBytes;
}
