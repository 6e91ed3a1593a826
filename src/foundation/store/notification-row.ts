/** What the two sides of a webhook keep of a notification in the same way. */
import { blobOf, integerOf, textOf } from './row.ts';
import type { Row } from './store.ts';

/** A notification that waits. */
export type WaitingNotification = ReturnType<typeof notificationOf>;

/** What one takes of a notification, and of all that wait. */
export interface WaitingSum {
  readonly count: number;
  readonly bytes: number;
}

export function notificationOf(row: Row) {
  return {
    seq: integerOf(row, 'seq'),
    /** The name of the webhook that it is for. */
    webhook: textOf(row, 'webhook'),
    /** Its own name, lower-case hex, given by the node of the agent that sends it. */
    id: textOf(row, 'id'),
    headers: headersOf(textOf(row, 'headers')),
    body: blobOf(row, 'body'),
    /** When it was kept, Unix milliseconds. */
    at: integerOf(row, 'at'),
  };
}

/** Names and values of headers in turn, as the stores keep them. */
function headersOf(json: string): readonly string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new TypeError('the column headers holds no list');
  return list.map(String);
}

export function waitingOf(row: Row | undefined): WaitingSum {
  return { count: integerOf(row, 'n'), bytes: integerOf(row, 'bytes') };
}
