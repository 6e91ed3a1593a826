/**
 * The webhook URLs that local agents call for remote agents, and the queued notifications. Times are Unix milliseconds.
 */
import { PUSH_BOX_LIFE_MS } from '../domain/push.ts';
import type { Aid } from '../identity/aid.ts';
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { notificationColumns, type WaitingNotification, type WaitingSum, waitingOf } from './notification-row.ts';
import { integerOf, textOf } from './row.ts';
import { type Store, sha256Hex } from './store.ts';
import { aid, integer, nullable, type RowOf, Table, text } from './table.ts';
import type { NewNotification } from './webhooks.ts';

const WEBHOOK_URL = new Table('push_boxes', {
  id: text,
  /** The local agent with the server that sends notifications. */
  called: aid,
  /** The remote agent with the webhooks. */
  caller: aid,
  /** SHA-256 of the secret in the URL. */
  tokenHash: text,
  openedAt: integer,
  /** When its caller last renewed it. */
  renewedAt: integer,
  /** Node of its caller when it was opened, as text. */
  node: text,
  /** Address of that node; null for a caller on this machine. */
  source: nullable(text),
});

function mailTable(secrets: StoredSecrets) {
  return new Table('push_mail', { ...notificationColumns(secrets), box: text });
}

export type WebhookUrlRow = RowOf<typeof WEBHOOK_URL>;

export class WebhookUrlStore {
  readonly #store: Store;
  readonly #mail: ReturnType<typeof mailTable>;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#mail = mailTable(secrets);
  }

  open(row: Omit<WebhookUrlRow, 'renewedAt'>): void {
    WEBHOOK_URL.insert(this.#store, { ...row, renewedAt: row.openedAt });
  }

  /** @param tokenHash the hash of its token, which another node key changes */
  renew(id: string, tokenHash: string, now: number): void {
    this.#store.run`UPDATE push_boxes SET renewed_at = ${now}, token_hash = ${tokenHash} WHERE id = ${id}`;
  }

  get(id: string): WebhookUrlRow | null {
    return WEBHOOK_URL.one(this.#store)`WHERE id = ${id}`;
  }

  find(called: Aid, caller: Aid): WebhookUrlRow | null {
    return WEBHOOK_URL.one(this.#store)`WHERE called = ${called} AND caller = ${caller}`;
  }

  /** Compares hashes, so its duration reveals nothing about the token. */
  byToken(token: string): WebhookUrlRow | null {
    return WEBHOOK_URL.one(this.#store)`WHERE token_hash = ${sha256Hex(token)}`;
  }

  /** All webhook URLs, oldest first, with the number of pending notifications. */
  list(): { readonly box: WebhookUrlRow; readonly waiting: number }[] {
    return this.#store.all`
      SELECT b.*, (SELECT count(*) FROM push_mail AS m WHERE m.box = b.id) AS waiting
      FROM push_boxes AS b ORDER BY b.opened_at, b.id`.map((row) => ({
      box: WEBHOOK_URL.read(row),
      waiting: integerOf(row, 'waiting'),
    }));
  }

  /** Deletes a webhook URL with its notifications; false if there is none. */
  delete(id: string): boolean {
    return this.#store.run`DELETE FROM push_boxes WHERE id = ${id}` > 0;
  }

  /** Deletes expired webhook URLs, which their callers did not renew. */
  deleteExpired(now: number): void {
    this.#store.run`DELETE FROM push_boxes WHERE renewed_at <= ${now - PUSH_BOX_LIFE_MS}`;
  }

  leave(box: string, notification: NewNotification, now: number): void {
    this.#mail.insert(this.#store, { ...notification, box, size: notification.body.length, at: now });
  }

  /** The next notification for a webhook; null if none is pending. */
  next(box: string, webhook: string): WaitingNotification | null {
    return this.#mail.one(this.#store)`WHERE box = ${box} AND webhook = ${webhook} ORDER BY seq LIMIT 1`;
  }

  /** Deletes a delivered notification. A power cut may undo this, because the receiver recognizes duplicates. */
  deleteDelivered(seq: number): void {
    this.#store.commit(() => this.#store.run`DELETE FROM push_mail WHERE seq = ${seq}`, 'soon');
  }

  /** Drops the pending notifications for a webhook. */
  drop(box: string, webhook: string): void {
    this.#store.run`DELETE FROM push_mail WHERE box = ${box} AND webhook = ${webhook}`;
  }

  /** Webhooks with pending notifications, of one webhook URL or of all. */
  withPending(box: string | null): { readonly box: string; readonly webhook: string }[] {
    return this.#store.all`
      SELECT DISTINCT box, webhook FROM push_mail WHERE ${box} IS NULL OR box = ${box}`.map((row) => ({
      box: textOf(row, 'box'),
      webhook: textOf(row, 'webhook'),
    }));
  }

  waitingFor(box: string, webhook: string): WaitingSum {
    return waitingOf(
      this.#store.one`
        SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM push_mail WHERE box = ${box} AND webhook = ${webhook}`,
    );
  }

  waitingIn(box: string): WaitingSum {
    return waitingOf(
      this.#store.one`SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM push_mail WHERE box = ${box}`,
    );
  }

  /** The pending notifications of each webhook URL that has some. */
  waitingByBox(): { readonly box: WebhookUrlRow; readonly sum: WaitingSum }[] {
    return this.#store.all`
      SELECT b.*, count(*) AS n, coalesce(sum(m.size), 0) AS bytes
      FROM push_mail AS m JOIN push_boxes AS b ON b.id = m.box GROUP BY b.id`.map((row) => ({
      box: WEBHOOK_URL.read(row),
      sum: waitingOf(row),
    }));
  }

  waitingTotal(): WaitingSum {
    return waitingOf(this.#store.one`SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM push_mail`);
  }
}
