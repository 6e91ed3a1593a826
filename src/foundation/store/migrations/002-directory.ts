/**
 * What identities of this daemon publish. A publisher is an agent or the node itself; its
 * publications are the records that are kept on the network. Times are Unix milliseconds.
 *
 * `publishers.seq` is written before a record with it goes out, so it never goes back.
 */
export const directoryMigration = `
    CREATE TABLE publishers (
      aid TEXT PRIMARY KEY,
      seq INTEGER NOT NULL DEFAULT 0,
      claim INTEGER NOT NULL,
      state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'lapsed', 'held')),
      due_at INTEGER,
      failures INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX publishers_due ON publishers (claim, due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX publishers_lapsed ON publishers (aid) WHERE state = 'lapsed';

    CREATE TABLE publications (
      aid TEXT NOT NULL REFERENCES publishers (aid) ON DELETE CASCADE,
      type INTEGER NOT NULL,
      name TEXT NOT NULL,
      payload BLOB NOT NULL,
      ttl INTEGER NOT NULL,
      seq INTEGER NOT NULL DEFAULT 0,
      published_at INTEGER,
      replicas INTEGER NOT NULL DEFAULT 0,
      dirty INTEGER NOT NULL DEFAULT 1,
      settled INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (aid, type, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX publications_unsettled ON publications (aid) WHERE settled = 0;

    CREATE TRIGGER agents_unpublish AFTER DELETE ON agents BEGIN
      DELETE FROM publishers WHERE aid = OLD.aid;
    END;
`;
