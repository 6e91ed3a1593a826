/** Events that agents caused which the owner does not know: they use a part of the log only. */
export const eventsOfStrangersMigration = `
    ALTER TABLE events ADD COLUMN by_stranger INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX events_by_stranger ON events (aid, seq) WHERE by_stranger = 1;
`;
