/** Objects of the agents here, and who else was seen to hold which. */
export const objectsMigration = `
    CREATE TABLE objects (
      aid         TEXT NOT NULL,
      -- SHA-256 of the bytes, lower-case hex.
      object_id   TEXT NOT NULL,
      name        TEXT NOT NULL,
      size        INTEGER NOT NULL,
      created_at  INTEGER NOT NULL,
      -- Of a file registered in place, below files_root; null where the bytes are stored under their id.
      path        TEXT,
      -- What the file looked like when its bytes were hashed, and when that was.
      fingerprint TEXT NOT NULL,
      hashed_at   INTEGER NOT NULL,
      PRIMARY KEY (aid, object_id)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX objects_id ON objects (object_id, aid);

    CREATE TABLE object_holders (
      object_id TEXT NOT NULL,
      holder    TEXT NOT NULL,
      seen_at   INTEGER NOT NULL,
      PRIMARY KEY (object_id, holder)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX object_holders_seen ON object_holders (seen_at);
`;
