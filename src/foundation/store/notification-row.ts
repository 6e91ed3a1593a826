/** Columns of a notification that both sides of a webhook store. */
import { blobOf, integerOf, textOf } from './row.ts';
import type { Row } from './store.ts';

/** A pending notification. */
export type WaitingNotification = ReturnType<typeof notificationOf>;

/** The number and bytes of pending notifications. */
export interface WaitingSum {
  readonly count: number;
  readonly bytes: number;
}

export function notificationOf(row: Row) {
  return {
    seq: integerOf(row, 'seq'),
    /** The name of its webhook. */
    webhook: textOf(row, 'webhook'),
    /** The notification's ID in lower-case hex, assigned by the sender's node. */
    id: textOf(row, 'id'),
    headers: headersOf(textOf(row, 'headers')),
    body: blobOf(row, 'body'),
    /** When it was stored, Unix milliseconds. */
    at: integerOf(row, 'at'),
  };
}

/** Alternating names and values of headers, as the stores keep them. */
function headersOf(json: string): readonly string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new TypeError('column headers has no list');
  return list.map(String);
}

export function waitingOf(row: Row | undefined): WaitingSum {
  return { count: integerOf(row, 'n'), bytes: integerOf(row, 'bytes') };
}
