/** Columns of a notification that both sides of a webhook store. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { blobOf, integerOf, textOf } from './row.ts';
import type { Row } from './store.ts';

/** A pending notification. */
export type WaitingNotification = ReturnType<typeof notificationOf>;

/** The number and bytes of pending notifications. */
export interface WaitingSum {
  readonly count: number;
  readonly bytes: number;
}

export function notificationOf(row: Row, secrets: StoredSecrets) {
  return {
    seq: integerOf(row, 'seq'),
    /** The name of its webhook. */
    webhook: textOf(row, 'webhook'),
    /** The notification's ID in lower-case hex, assigned by the sender's node. */
    id: textOf(row, 'id'),
    headers: headersOf(textOf(row, 'headers'), secrets),
    body: blobOf(row, 'body'),
    /** When it was stored, Unix milliseconds. */
    at: integerOf(row, 'at'),
  };
}

const HEADERS = 'headers of a notification';

/** Alternating names and values of headers for a row. They contain credentials, so they are sealed. */
export function sealHeaders(headers: readonly string[], secrets: StoredSecrets): string {
  return Buffer.from(secrets.seal(HEADERS, JSON.stringify(headers))).toString('base64url');
}

/** The headers of a row; none if another node sealed them. */
function headersOf(text: string, secrets: StoredSecrets): readonly string[] {
  const list: unknown = JSON.parse(secrets.open(HEADERS, Buffer.from(text, 'base64url')) ?? '[]');
  if (!Array.isArray(list)) throw new TypeError('column headers has no list');
  return list.map(String);
}

export function waitingOf(row: Row | undefined): WaitingSum {
  return { count: integerOf(row, 'n'), bytes: integerOf(row, 'bytes') };
}
