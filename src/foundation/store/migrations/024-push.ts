/**
 * Webhooks of programs here, which agents elsewhere call back, and the mailboxes in which agents here leave notifications
 * for webhooks elsewhere. Times are Unix milliseconds.
 */
export const pushMigration = `
    CREATE TABLE webhooks (
      name TEXT PRIMARY KEY,
      origin_id TEXT NOT NULL REFERENCES origins (id) ON DELETE CASCADE,
      url TEXT NOT NULL,
      -- Which task and configuration it is of, where that was known; one of them is registered once.
      purpose TEXT,
      registered_at INTEGER NOT NULL,
      used_at INTEGER NOT NULL,
      taken INTEGER NOT NULL DEFAULT 0,
      UNIQUE (origin_id, url, purpose)
    ) STRICT;
    CREATE INDEX webhooks_by_use ON webhooks (origin_id, used_at);
    CREATE INDEX webhooks_by_time ON webhooks (used_at);

    -- A row without a body was taken by the webhook: it says that this notification is not to come again.
    CREATE TABLE webhook_posts (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      webhook TEXT NOT NULL REFERENCES webhooks (name) ON DELETE CASCADE,
      id TEXT NOT NULL,
      headers TEXT NOT NULL,
      body BLOB,
      size INTEGER NOT NULL,
      at INTEGER NOT NULL,
      UNIQUE (webhook, id)
    ) STRICT;
    CREATE INDEX webhook_posts_waiting ON webhook_posts (webhook, seq, size) WHERE body IS NOT NULL;
    CREATE INDEX webhook_posts_by_time ON webhook_posts (at);

    CREATE TABLE push_boxes (
      id TEXT PRIMARY KEY,
      called TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
      caller TEXT NOT NULL,
      token TEXT NOT NULL UNIQUE,
      opened_at INTEGER NOT NULL,
      renewed_at INTEGER NOT NULL,
      UNIQUE (called, caller)
    ) STRICT;
    CREATE INDEX push_boxes_by_time ON push_boxes (renewed_at);

    CREATE TABLE push_mail (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      box TEXT NOT NULL REFERENCES push_boxes (id) ON DELETE CASCADE,
      webhook TEXT NOT NULL,
      id TEXT NOT NULL,
      headers TEXT NOT NULL,
      body BLOB NOT NULL,
      size INTEGER NOT NULL,
      at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX push_mail_waiting ON push_mail (box, webhook, seq, size);
    CREATE INDEX push_mail_by_time ON push_mail (at);
`;
