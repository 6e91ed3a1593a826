/** Webhooks of local programs, and their pending notifications. Times are Unix milliseconds. */
import { MAX_RECEIVED_IDS, MAX_WEBHOOKS_PER_ORIGIN, RECEIVED_IDS_LIFE_MS, WEBHOOK_LIFE_MS } from '../domain/push.ts';
import type { Aid } from '../identity/aid.ts';
import type { StoredSecrets } from '../keys/stored-secrets.ts';
import { openToken } from './access-tokens.ts';
import { notificationColumns, type WaitingNotification, type WaitingSum, waitingOf } from './notification-row.ts';
import { aidFromRow, blobOf, integerOf, textOf } from './row.ts';
import type { Row, Store } from './store.ts';
import { Table } from './table.ts';

const URL_KEY_BYTES = 32;
/** Interval of the cleanup of old notification IDs, in notifications. */
const ID_CLEANUP_INTERVAL = 1024;

export type WebhookRow = Readonly<ReturnType<typeof webhookOf>>;

function purposeOf(name: string): string {
  return `webhooks ${name}`;
}

/** The key of a URL in its row: the same for the same URL, but it does not show the URL. */
function urlKey(secrets: StoredSecrets, url: string): string {
  return Buffer.from(secrets.derive(`webhooks url ${url}`, URL_KEY_BYTES)).toString('hex');
}

/** The URL of a row; null if another node sealed it. */
function urlOf(row: Row, secrets: StoredSecrets): string | null {
  return secrets.open(purposeOf(textOf(row, 'name')), blobOf(row, 'sealed_url'));
}

/** A new webhook. */
export interface NewWebhook {
  readonly name: string;
  /** The local address through which it was registered. */
  readonly originId: string;
  readonly url: string;
  /** The task and configuration that it belongs to; null if unknown, so that it equals no other. */
  readonly purpose: string | null;
}

/** A received notification. */
export interface NewNotification {
  readonly webhook: string;
  readonly id: string;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

function webhookOf(row: Row, url: string) {
  return {
    /** The secret last part of the webhook URL that the other node calls. */
    name: textOf(row, 'name'),
    originId: textOf(row, 'origin_id'),
    localAid: aidFromRow(row, 'local_aid'),
    remoteAid: aidFromRow(row, 'remote_aid'),
    url,
    registeredAt: integerOf(row, 'registered_at'),
    /** When it was last registered or called. */
    usedAt: integerOf(row, 'used_at'),
    /** Delivered notifications. */
    taken: integerOf(row, 'taken'),
  };
}

export class WebhookStore {
  readonly #store: Store;
  readonly #secrets: StoredSecrets;
  readonly #posts: Table<ReturnType<typeof notificationColumns>>;

  constructor(store: Store, secrets: StoredSecrets) {
    this.#store = store;
    this.#secrets = secrets;
    this.#posts = new Table('webhook_posts', notificationColumns(secrets));
  }

  /**
   * Stores a webhook and returns its name. A webhook with the same purpose is reused. At the limit, the least recently
   * used webhook is deleted.
   */
  register({ name, originId, url, purpose }: NewWebhook, now: number): string {
    return this.#store.transaction(() => {
      const row = this.#store.one`
        INSERT INTO webhooks (name, origin_id, url, sealed_url, purpose, registered_at, used_at)
        VALUES (${name}, ${originId}, ${urlKey(this.#secrets, url)}, ${this.#secrets.seal(purposeOf(name), url)},
          ${purpose}, ${now}, ${now})
        ON CONFLICT (origin_id, url, purpose) DO UPDATE SET used_at = excluded.used_at
        RETURNING name`;
      const kept = textOf(row, 'name');
      this.#store.run`
        DELETE FROM webhooks WHERE origin_id = ${originId} AND name IN
          (SELECT name FROM webhooks WHERE origin_id = ${originId}
           ORDER BY name = ${kept} DESC, used_at DESC, name LIMIT -1 OFFSET ${MAX_WEBHOOKS_PER_ORIGIN})`;
      return kept;
    });
  }

  get(name: string): WebhookRow | null {
    const row = this.#store.one`
      SELECT w.*, o.local_aid, o.remote_aid FROM webhooks AS w JOIN origins AS o ON o.id = w.origin_id
      WHERE w.name = ${name}`;
    return row === undefined ? null : this.#webhook(row);
  }

  #webhook(row: Row): WebhookRow | null {
    const url = urlOf(row, this.#secrets);
    return url === null ? null : webhookOf(row, url);
  }

  /** The webhooks, the most recently used first, with the number of pending notifications. */
  list(limit: number): { readonly webhook: WebhookRow; readonly waiting: number }[] {
    return this.#store.all`
      SELECT w.*, o.local_aid, o.remote_aid,
        (SELECT count(*) FROM webhook_posts AS p WHERE p.webhook = w.name AND p.body IS NOT NULL) AS waiting
      FROM webhooks AS w JOIN origins AS o ON o.id = w.origin_id
      ORDER BY w.used_at DESC, w.name LIMIT ${limit}`.flatMap((row) => {
      const webhook = this.#webhook(row);
      return webhook === null ? [] : [{ webhook, waiting: integerOf(row, 'waiting') }];
    });
  }

  /** True if a local agent has a webhook for a remote agent. */
  hasAny(localAid: Aid, remoteAid: Aid): boolean {
    return (
      this.#store.one`
        SELECT 1 FROM webhooks AS w JOIN origins AS o ON o.id = w.origin_id
        WHERE o.local_aid = ${localAid} AND o.remote_aid = ${remoteAid} LIMIT 1` !== undefined
    );
  }

  /** The local addresses with webhooks, with their caller and called agent. */
  origins() {
    return this.#store.all`
      SELECT o.id, o.local_aid, o.remote_aid, o.sealed_token FROM origins AS o
      WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.origin_id = o.id)`.map((row) => ({
      id: textOf(row, 'id'),
      localAid: aidFromRow(row, 'local_aid'),
      remoteAid: aidFromRow(row, 'remote_aid'),
      accessToken: openToken(this.#secrets, 'origins', row),
    }));
  }

  /** Deletes a webhook with its notifications; false if there is none. */
  delete(name: string): boolean {
    return this.#store.run`DELETE FROM webhooks WHERE name = ${name}` > 0;
  }

  /** Deletes all webhooks of a local agent for a remote agent. */
  deletePair(localAid: Aid, remoteAid: Aid): void {
    this.#store.run`
      DELETE FROM webhooks WHERE origin_id IN
        (SELECT id FROM origins WHERE local_aid = ${localAid} AND remote_aid = ${remoteAid})`;
  }

  /** Stores a notification; false if its ID was stored before. */
  addNotification(notification: NewNotification, now: number): boolean {
    return this.#store.transaction(() => {
      const row = { ...notification, size: notification.body.length, at: now };
      const added = this.#posts.insert(this.#store, row, 'ON CONFLICT (webhook, id) DO NOTHING');
      if (added > 0) this.#store.run`UPDATE webhooks SET used_at = ${now} WHERE name = ${notification.webhook}`;
      return added > 0;
    });
  }

  /** True if a notification was stored before, delivered or not. */
  isKnown(webhook: string, id: string): boolean {
    return this.#store.one`SELECT 1 FROM webhook_posts WHERE webhook = ${webhook} AND id = ${id}` !== undefined;
  }

  /** The next notification of a webhook; null if none is pending. */
  next(webhook: string): WaitingNotification | null {
    return this.#posts.one(this.#store)`WHERE webhook = ${webhook} AND body IS NOT NULL ORDER BY seq LIMIT 1`;
  }

  /** Ends the delivery of a notification and keeps its ID. @param taken the webhook received it */
  settle(seq: number, taken: boolean): void {
    this.#store.transaction(() => {
      const row = this.#store.one`
        UPDATE webhook_posts SET body = NULL, size = 0, headers = '[]'
        WHERE seq = ${seq} AND body IS NOT NULL RETURNING webhook`;
      if (row === undefined) return;
      const webhook = textOf(row, 'webhook');
      if (taken) this.#store.run`UPDATE webhooks SET taken = taken + 1 WHERE name = ${webhook}`;
      if (seq % ID_CLEANUP_INTERVAL === 0) this.#deleteOldest(webhook);
    });
  }

  /** Deletes old IDs, per local address: a busy sender cannot displace IDs of others. */
  #deleteOldest(webhook: string): void {
    this.#store.run`
      DELETE FROM webhook_posts WHERE seq IN
        (SELECT p.seq FROM webhooks AS w JOIN webhook_posts AS p ON p.webhook = w.name AND p.body IS NULL
         WHERE w.origin_id = (SELECT origin_id FROM webhooks WHERE name = ${webhook})
         ORDER BY p.seq DESC LIMIT -1 OFFSET ${MAX_RECEIVED_IDS})`;
  }

  /** Webhooks with pending notifications. */
  withPending(): Pick<WebhookRow, 'name' | 'url'>[] {
    const rows = this.#store.all`
      SELECT name, sealed_url FROM webhooks
      WHERE name IN (SELECT webhook FROM webhook_posts WHERE body IS NOT NULL)`;
    return rows.flatMap((row) => {
      const url = urlOf(row, this.#secrets);
      return url === null ? [] : [{ name: textOf(row, 'name'), url }];
    });
  }

  waitingFor(webhook: string): WaitingSum {
    return waitingOf(
      this.#store.one`
        SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM webhook_posts
        WHERE webhook = ${webhook} AND body IS NOT NULL`,
    );
  }

  /** The pending notifications of all webhooks of one local address. */
  waitingForOrigin(originId: string): WaitingSum {
    return waitingOf(
      this.#store.one`
        SELECT count(*) AS n, coalesce(sum(p.size), 0) AS bytes FROM webhooks AS w
        JOIN webhook_posts AS p ON p.webhook = w.name AND p.body IS NOT NULL WHERE w.origin_id = ${originId}`,
    );
  }

  waitingTotal(): WaitingSum {
    return waitingOf(
      this.#store.one`SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM webhook_posts WHERE body IS NOT NULL`,
    );
  }

  /** Deletes expired webhooks and expired notification IDs. */
  deleteExpired(now: number): void {
    this.#store.transaction(() => {
      this.#store.run`DELETE FROM webhooks WHERE used_at <= ${now - WEBHOOK_LIFE_MS}`;
      this.#store.run`DELETE FROM webhook_posts WHERE body IS NULL AND at <= ${now - RECEIVED_IDS_LIFE_MS}`;
    });
  }
}
