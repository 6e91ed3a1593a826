/** The database of records that this node keeps for others, and of the nodes it last knew. */
export const RECORD_STORE_MIGRATIONS: readonly string[] = [
  `
    CREATE TABLE records (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      key BLOB NOT NULL,
      type INTEGER NOT NULL,
      aid TEXT NOT NULL,
      note INTEGER NOT NULL,
      part INTEGER NOT NULL,
      issued_at INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      timestamp INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      publisher TEXT NOT NULL,
      size INTEGER NOT NULL,
      digest BLOB NOT NULL,
      encoded BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX records_slot ON records (key, type, aid, note);
    CREATE INDEX records_key ON records (key, part, type, expires_at, digest, publisher);
    CREATE INDEX records_expiry ON records (expires_at);
    CREATE INDEX records_publisher ON records (publisher, expires_at);
    CREATE TABLE nodes (
      host TEXT NOT NULL,
      port INTEGER NOT NULL,
      PRIMARY KEY (host, port)
    ) STRICT, WITHOUT ROWID;
  `,
  // `heard_at`: since when a record is looked after, Unix seconds. Short-lived ones are not: their publishers renew them.
  `
    ALTER TABLE records ADD COLUMN heard_at INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX records_upkeep ON records (publisher, heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_heard ON records (heard_at) WHERE expires_at - timestamp > 3600;
    CREATE INDEX records_upkeep_keys ON records (key) WHERE expires_at - timestamp > 3600;
    CREATE TABLE removed_notes (
      digest BLOB PRIMARY KEY,
      token BLOB NOT NULL,
      until INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX removed_notes_until ON removed_notes (until);
  `,
];
