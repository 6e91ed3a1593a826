/** Webhooks of programs here, and the notifications that they have not taken yet. Times are Unix milliseconds. */
import { MAX_RECEIVED_IDS, MAX_WEBHOOKS_PER_ORIGIN, RECEIVED_IDS_LIFE_MS, WEBHOOK_LIFE_MS } from '../domain/push.ts';
import type { Aid } from '../identity/aid.ts';
import { notificationOf, type WaitingNotification, type WaitingSum, waitingOf } from './notification-row.ts';
import { aidFromRow, integerOf, orNull, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** After so many notifications the oldest names are looked for. */
const NAMES_LOOK_EVERY = 1024;

export type WebhookRow = Readonly<ReturnType<typeof webhookOf>>;

/** A webhook that begins. */
export interface NewWebhook {
  readonly name: string;
  /** The local address through which it was registered. */
  readonly originId: string;
  readonly url: string;
  /** Which task and configuration it is of; null where that is not known, so that it is like no other. */
  readonly purpose: string | null;
}

/** A notification as it comes. */
export interface NewNotification {
  readonly webhook: string;
  readonly id: string;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

function webhookOf(row: Row) {
  return {
    /** What ends the address that the other side calls. */
    name: textOf(row, 'name'),
    originId: textOf(row, 'origin_id'),
    localAid: aidFromRow(row, 'local_aid'),
    remoteAid: aidFromRow(row, 'remote_aid'),
    url: textOf(row, 'url'),
    registeredAt: integerOf(row, 'registered_at'),
    /** When it was registered or called the last time. */
    usedAt: integerOf(row, 'used_at'),
    /** Notifications that it has taken. */
    taken: integerOf(row, 'taken'),
  };
}

export class WebhookStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Keeps a webhook, and gives its name: that of the one which stands where it is of the same purpose. Where there are too
   * many, the one that was unused for longest goes.
   */
  register({ name, originId, url, purpose }: NewWebhook, now: number): string {
    return this.#store.transaction(() => {
      const row = this.#store.one`
        INSERT INTO webhooks (name, origin_id, url, purpose, registered_at, used_at)
        VALUES (${name}, ${originId}, ${url}, ${purpose}, ${now}, ${now})
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
    return row === undefined ? null : webhookOf(row);
  }

  /** All of them, those used last first; each with how many notifications wait for it. */
  list(limit: number): { readonly webhook: WebhookRow; readonly waiting: number }[] {
    return this.#store.all`
      SELECT w.*, o.local_aid, o.remote_aid,
        (SELECT count(*) FROM webhook_posts AS p WHERE p.webhook = w.name AND p.body IS NOT NULL) AS waiting
      FROM webhooks AS w JOIN origins AS o ON o.id = w.origin_id
      ORDER BY w.used_at DESC, w.name LIMIT ${limit}`.map((row) => ({
      webhook: webhookOf(row),
      waiting: integerOf(row, 'waiting'),
    }));
  }

  /** True where an agent here has a webhook for another agent. */
  hasAny(localAid: Aid, remoteAid: Aid): boolean {
    return (
      this.#store.one`
        SELECT 1 FROM webhooks AS w JOIN origins AS o ON o.id = w.origin_id
        WHERE o.local_aid = ${localAid} AND o.remote_aid = ${remoteAid} LIMIT 1` !== undefined
    );
  }

  /** The local addresses with webhooks: who calls whom through them. */
  origins() {
    return this.#store.all`
      SELECT o.id, o.local_aid, o.remote_aid, o.access_token FROM origins AS o
      WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.origin_id = o.id)`.map((row) => ({
      id: textOf(row, 'id'),
      localAid: aidFromRow(row, 'local_aid'),
      remoteAid: aidFromRow(row, 'remote_aid'),
      accessToken: orNull(textOf, row, 'access_token') ?? undefined,
    }));
  }

  /** Ends a webhook, and all that waits for it; false where there is none. */
  delete(name: string): boolean {
    return this.#store.run`DELETE FROM webhooks WHERE name = ${name}` > 0;
  }

  /** Ends what an agent here has registered with another one. */
  deletePair(localAid: Aid, remoteAid: Aid): void {
    this.#store.run`
      DELETE FROM webhooks WHERE origin_id IN
        (SELECT id FROM origins WHERE local_aid = ${localAid} AND remote_aid = ${remoteAid})`;
  }

  /** Keeps a notification; false where one of this name was kept before. */
  keep({ webhook, id, headers, body }: NewNotification, now: number): boolean {
    return this.#store.transaction(() => {
      const size = body.length;
      const added = this.#store.run`
        INSERT INTO webhook_posts (webhook, id, headers, body, size, at)
        VALUES (${webhook}, ${id}, ${JSON.stringify(headers)}, ${body}, ${size}, ${now})
        ON CONFLICT (webhook, id) DO NOTHING`;
      if (added > 0) this.#store.run`UPDATE webhooks SET used_at = ${now} WHERE name = ${webhook}`;
      return added > 0;
    });
  }

  /** True where a notification was kept before, whether the webhook has taken it or not. */
  isKnown(webhook: string, id: string): boolean {
    return this.#store.one`SELECT 1 FROM webhook_posts WHERE webhook = ${webhook} AND id = ${id}` !== undefined;
  }

  /** The one that a webhook gets next; null where none waits. */
  next(webhook: string): WaitingNotification | null {
    const row = this.#store.one`
      SELECT * FROM webhook_posts WHERE webhook = ${webhook} AND body IS NOT NULL ORDER BY seq LIMIT 1`;
    return row === undefined ? null : notificationOf(row);
  }

  /** Notes that a notification is not to be sent any more; its name stays. @param taken the webhook has it */
  settle(seq: number, taken: boolean): void {
    this.#store.transaction(() => {
      const row = this.#store.one`
        UPDATE webhook_posts SET body = NULL, size = 0, headers = '[]'
        WHERE seq = ${seq} AND body IS NOT NULL RETURNING webhook`;
      if (row === undefined) return;
      const webhook = textOf(row, 'webhook');
      if (taken) this.#store.run`UPDATE webhooks SET taken = taken + 1 WHERE name = ${webhook}`;
      if (seq % NAMES_LOOK_EVERY === 0) this.#forgetOldest(webhook);
    });
  }

  /** Of the names that are remembered for one local address: whoever sends very many has none of others forgotten. */
  #forgetOldest(webhook: string): void {
    this.#store.run`
      DELETE FROM webhook_posts WHERE seq IN
        (SELECT p.seq FROM webhooks AS w JOIN webhook_posts AS p ON p.webhook = w.name AND p.body IS NULL
         WHERE w.origin_id = (SELECT origin_id FROM webhooks WHERE name = ${webhook})
         ORDER BY p.seq DESC LIMIT -1 OFFSET ${MAX_RECEIVED_IDS})`;
  }

  /** Webhooks for which something waits. */
  busy(): Pick<WebhookRow, 'name' | 'url'>[] {
    const rows = this.#store.all`
      SELECT name, url FROM webhooks WHERE name IN (SELECT webhook FROM webhook_posts WHERE body IS NOT NULL)`;
    return rows.map((row) => ({ name: textOf(row, 'name'), url: textOf(row, 'url') }));
  }

  waitingFor(webhook: string): WaitingSum {
    return waitingOf(
      this.#store.one`
        SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM webhook_posts
        WHERE webhook = ${webhook} AND body IS NOT NULL`,
    );
  }

  /** What waits for the webhooks of one local address. */
  waitingBy(originId: string): WaitingSum {
    return waitingOf(
      this.#store.one`
        SELECT count(*) AS n, coalesce(sum(p.size), 0) AS bytes FROM webhooks AS w
        JOIN webhook_posts AS p ON p.webhook = w.name AND p.body IS NOT NULL WHERE w.origin_id = ${originId}`,
    );
  }

  waitingInAll(): WaitingSum {
    return waitingOf(
      this.#store.one`SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM webhook_posts WHERE body IS NOT NULL`,
    );
  }

  /** Forgets webhooks that nobody used for long, and names that no notification comes with any more. */
  forgetOld(now: number): void {
    this.#store.transaction(() => {
      this.#store.run`DELETE FROM webhooks WHERE used_at <= ${now - WEBHOOK_LIFE_MS}`;
      this.#store.run`DELETE FROM webhook_posts WHERE body IS NULL AND at <= ${now - RECEIVED_IDS_LIFE_MS}`;
    });
  }
}
