/**
 * Notes that neither the recipient's node nor another node keeps yet. Times are Unix milliseconds.
 *
 * `until` is when the note expires, `due_at` the time of the next attempt.
 */
export const noteOutboxMigration = `
    CREATE TABLE note_outbox (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      aid TEXT NOT NULL,
      message_id BLOB NOT NULL,
      recipient TEXT NOT NULL,
      msg_type INTEGER NOT NULL,
      body BLOB NOT NULL,
      nonce BLOB NOT NULL,
      sent_at INTEGER NOT NULL,
      until INTEGER NOT NULL,
      due_at INTEGER NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0,
      UNIQUE (aid, message_id)
    ) STRICT;
    CREATE INDEX note_outbox_due ON note_outbox (due_at);

    CREATE TRIGGER agents_note_outbox AFTER DELETE ON agents BEGIN
      DELETE FROM note_outbox WHERE aid = OLD.aid;
    END;
`;
