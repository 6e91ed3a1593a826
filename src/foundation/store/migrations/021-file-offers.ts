/**
 * Files that agents here offer, and that are offered to them. Times are Unix milliseconds.
 *
 * `tell_at` is when the peer is told the next time how the offer ended; null where it knows.
 */
export const fileOffersMigration = `
    CREATE TABLE file_offers (
      aid TEXT NOT NULL,
      id TEXT NOT NULL,
      peer TEXT NOT NULL,
      outgoing INTEGER NOT NULL,
      object_id TEXT NOT NULL,
      size INTEGER NOT NULL,
      name TEXT NOT NULL,
      message TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('open', 'taken', 'declined', 'withdrawn', 'expired')),
      at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      settled_at INTEGER,
      -- The object is there for offers alone, and goes with the last one that is open.
      temporary INTEGER NOT NULL,
      tell_at INTEGER,
      attempts INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (aid, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX file_offers_open ON file_offers (aid, outgoing, peer, object_id) WHERE state = 'open';
    CREATE INDEX file_offers_expiry ON file_offers (expires_at) WHERE state = 'open';
    CREATE INDEX file_offers_temporary ON file_offers (aid, object_id) WHERE temporary = 1 AND state <> 'open';
    CREATE INDEX file_offers_tell ON file_offers (tell_at) WHERE tell_at IS NOT NULL;

    CREATE TRIGGER agents_file_offers AFTER DELETE ON agents BEGIN
      DELETE FROM file_offers WHERE aid = OLD.aid;
    END;
`;
