/**
 * Copies of notes that the recipient's node has and the record network is still to get. Times are Unix milliseconds.
 *
 * `until` is when the note expires, `due_at` when it is tried the next time. Nothing says whose note it is.
 */
export const noteCopiesMigration = `
    CREATE TABLE note_copies (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      mailbox BLOB NOT NULL,
      record BLOB NOT NULL,
      until INTEGER NOT NULL,
      due_at INTEGER NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX note_copies_due ON note_copies (due_at);
    CREATE INDEX note_copies_mailbox ON note_copies (mailbox, due_at);
`;
