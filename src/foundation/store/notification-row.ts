/** Columns of a notification that both sides of a webhook store. */
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { integerOf, textOf } from './row.ts';
import type { Row } from './store.ts';
import { blob, type Column, integer, type RowOf, type Table, text } from './table.ts';

/** A pending notification. */
export type WaitingNotification = RowOf<Table<ReturnType<typeof notificationColumns>>>;

/** The number and bytes of pending notifications. */
export interface WaitingSum {
  readonly count: number;
  readonly bytes: number;
}

export function notificationColumns(secrets: StoredSecrets) {
  return {
    seq: integer,
    /** The name of its webhook. */
    webhook: text,
    /** The notification's ID in lower-case hex, assigned by the sender's node. */
    id: text,
    headers: sealedHeaders(secrets),
    body: blob,
    size: integer,
    /** When it was stored, Unix milliseconds. */
    at: integer,
  };
}

const HEADERS = 'headers of a notification';

/** Alternating names and values of headers. They contain credentials, so they are sealed. */
function sealedHeaders(secrets: StoredSecrets): Column<readonly string[]> {
  return {
    read: (row, column) => headersOf(textOf(row, column), secrets),
    write: (headers) => Buffer.from(secrets.seal(HEADERS, JSON.stringify(headers))).toString('base64url'),
  };
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
