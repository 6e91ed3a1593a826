/** Cards: what agents here have signed of themselves, and what others were seen to have signed. */
export const cardsMigration = `
    CREATE TABLE own_cards (
      aid TEXT PRIMARY KEY REFERENCES agents (aid) ON DELETE CASCADE,
      card TEXT NOT NULL,
      object_id TEXT NOT NULL,
      signed_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE seen_cards (
      aid TEXT PRIMARY KEY,
      card TEXT NOT NULL,
      object_id TEXT NOT NULL,
      signed_at INTEGER NOT NULL,
      seen_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX seen_cards_by_time ON seen_cards (seen_at);
`;
