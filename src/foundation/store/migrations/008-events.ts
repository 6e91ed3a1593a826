/** The event log: one sequence for all agents of this daemon. */
export const eventsMigration = `
    CREATE TABLE events (
      -- AUTOINCREMENT: a number is never given twice, so a cursor from another life of the log shows.
      seq  INTEGER PRIMARY KEY AUTOINCREMENT,
      aid  TEXT NOT NULL,
      type TEXT NOT NULL,
      -- Milliseconds since the Unix epoch.
      at   INTEGER NOT NULL,
      -- JSON.
      data TEXT NOT NULL
    ) STRICT;

    CREATE INDEX events_aid ON events (aid, seq);

    CREATE TABLE event_streams (
      aid        TEXT PRIMARY KEY,
      -- Events of the agent that are kept.
      count      INTEGER NOT NULL,
      -- The newest one that was forgotten; 0 where none was.
      pruned_seq INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX event_streams_pruned ON event_streams (pruned_seq);
`;
