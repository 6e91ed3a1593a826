/**
 * The webhook URLs that local agents call for remote agents, and the queued notifications. Times are Unix milliseconds.
 */
import { PUSH_BOX_LIFE_MS } from '../domain/push.ts';
import type { Aid } from '../identity/aid.ts';
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import {
  notificationOf,
  sealHeaders,
  type WaitingNotification,
  type WaitingSum,
  waitingOf,
} from './notification-row.ts';
import { aidFromRow, integerOf, orNull, textOf } from './row.ts';
import { type Row, type Store, sha256Hex } from './store.ts';
import type { NewNotification } from './webhooks.ts';

export type WebhookUrlRow = Readonly<ReturnType<typeof webhookUrlOf>>;

function webhookUrlOf(row: Row) {
  return {
    id: textOf(row, 'id'),
    /** The local agent with the server that sends notifications. */
    called: aidFromRow(row, 'called'),
    /** The remote agent with the webhooks. */
    caller: aidFromRow(row, 'caller'),
    /** SHA-256 of the secret in the URL. */
    tokenHash: textOf(row, 'token_hash'),
    openedAt: integerOf(row, 'opened_at'),
    /** When its caller last renewed it. */
    renewedAt: integerOf(row, 'renewed_at'),
    /** Node of its caller when it was opened, as text. */
    node: textOf(row, 'node'),
    /** Address of that node; null for a caller on this machine. */
    source: orNull(textOf, row, 'source'),
  };
}

export class WebhookUrlStore {
  readonly #store: Store;
  readonly #secrets: StoredSecrets;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#secrets = secrets;
  }

  open({ id, called, caller, tokenHash, openedAt, node, source }: Omit<WebhookUrlRow, 'renewedAt'>): void {
    this.#store.run`
      INSERT INTO push_boxes (id, called, caller, token_hash, opened_at, renewed_at, node, source)
      VALUES (${id}, ${called}, ${caller}, ${tokenHash}, ${openedAt}, ${openedAt}, ${node}, ${source})`;
  }

  renew(id: string, now: number): void {
    this.#store.run`UPDATE push_boxes SET renewed_at = ${now} WHERE id = ${id}`;
  }

  get(id: string): WebhookUrlRow | null {
    return oneOf(this.#store.one`SELECT * FROM push_boxes WHERE id = ${id}`);
  }

  find(called: Aid, caller: Aid): WebhookUrlRow | null {
    return oneOf(this.#store.one`SELECT * FROM push_boxes WHERE called = ${called} AND caller = ${caller}`);
  }

  /** Compares hashes, so its duration reveals nothing about the token. */
  byToken(token: string): WebhookUrlRow | null {
    return oneOf(this.#store.one`SELECT * FROM push_boxes WHERE token_hash = ${sha256Hex(token)}`);
  }

  /** All webhook URLs, oldest first, with the number of pending notifications. */
  list(): { readonly box: WebhookUrlRow; readonly waiting: number }[] {
    return this.#store.all`
      SELECT b.*, (SELECT count(*) FROM push_mail AS m WHERE m.box = b.id) AS waiting
      FROM push_boxes AS b ORDER BY b.opened_at, b.id`.map((row) => ({
      box: webhookUrlOf(row),
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

  leave(box: string, { webhook, id, headers, body }: NewNotification, now: number): void {
    this.#store.run`
      INSERT INTO push_mail (box, webhook, id, headers, body, size, at)
      VALUES (${box}, ${webhook}, ${id}, ${sealHeaders(headers, this.#secrets)}, ${body}, ${body.length}, ${now})`;
  }

  /** The next notification for a webhook; null if none is pending. */
  next(box: string, webhook: string): WaitingNotification | null {
    const row = this.#store.one`
      SELECT * FROM push_mail WHERE box = ${box} AND webhook = ${webhook} ORDER BY seq LIMIT 1`;
    return row === undefined ? null : notificationOf(row, this.#secrets);
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
      box: webhookUrlOf(row),
      sum: waitingOf(row),
    }));
  }

  waitingTotal(): WaitingSum {
    return waitingOf(this.#store.one`SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM push_mail`);
  }
}

function oneOf(row: Row | undefined): WebhookUrlRow | null {
  return row === undefined ? null : webhookUrlOf(row);
}
