/** Who caused an event: a peer, a room or all strangers together. Each uses a part of the log only. */
export const causesOfEventsMigration = `
    ALTER TABLE events ADD COLUMN cause TEXT;
    UPDATE events SET cause = 'strangers' WHERE by_stranger = 1;
    DROP INDEX events_by_stranger;
    ALTER TABLE events DROP COLUMN by_stranger;
    CREATE INDEX events_by_cause ON events (aid, cause, seq) WHERE cause IS NOT NULL;
`;
