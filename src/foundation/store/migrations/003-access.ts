/** Access lists: whom a subject (an agent, or the node for its remote administration) lets in. */
export const accessMigration = `
    CREATE TABLE access_subjects (
      subject TEXT PRIMARY KEY,
      policy  TEXT NOT NULL CHECK (policy IN ('public', 'deny')),
      -- One salt for all secrets of a subject: a guess costs one derivation, however many secrets there are.
      salt    BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE access_entries (
      id          TEXT PRIMARY KEY,
      subject     TEXT NOT NULL REFERENCES access_subjects (subject) ON DELETE CASCADE,
      list        TEXT NOT NULL CHECK (list IN ('allow', 'deny')),
      aid         TEXT,
      secret_hash BLOB,
      label       TEXT,
      -- Milliseconds since the Unix epoch.
      created_at  INTEGER NOT NULL,
      expires_at  INTEGER,
      CHECK ((aid IS NULL) <> (secret_hash IS NULL)),
      CHECK (list = 'allow' OR aid IS NOT NULL)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX access_entries_subject ON access_entries (subject, list, created_at);
    CREATE UNIQUE INDEX access_entries_aid ON access_entries (subject, list, aid) WHERE aid IS NOT NULL;
    CREATE UNIQUE INDEX access_entries_secret ON access_entries (subject, secret_hash) WHERE secret_hash IS NOT NULL;
`;
