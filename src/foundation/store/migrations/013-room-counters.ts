/** What is unread in a room is counted as entries come and go; what was retracted is not unread. */
export const roomCountersMigration = `
    ALTER TABLE rooms ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE rooms ADD COLUMN mentions INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE room_entries ADD COLUMN retracted INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX room_retracts_seq ON room_retracts (rid, seq);
    DROP INDEX room_entries_unread;
    DROP INDEX room_entries_mention;
    CREATE INDEX room_entries_unread ON room_entries (rid, seq, mention) WHERE counts = 1 AND void = 0 AND retracted = 0;
    CREATE INDEX room_entries_title ON room_entries (rid, depth, entry_id) WHERE kind = 'title' AND void = 0;
    UPDATE room_entries AS e SET retracted = EXISTS (
      SELECT 1 FROM room_retracts r JOIN room_entries x ON x.rid = r.rid AND x.seq = r.seq
      WHERE r.rid = e.rid AND r.target = e.entry_id AND x.void = 0 AND (r.by_admin = 1 OR x.author = e.author)
    ) WHERE rid IN (SELECT rid FROM room_retracts);
    UPDATE rooms SET (unread, mentions) = (
      SELECT count(*), coalesce(sum(mention), 0) FROM room_entries e
      WHERE e.rid = rooms.rid AND e.seq > rooms.read_seq AND e.counts = 1 AND e.void = 0 AND e.retracted = 0
    );
`;
