/**
 * The mailboxes of local agents. Times are Unix milliseconds.
 *
 * A note that was handed out is only marked (`taken_at`) until its answer is known to have reached
 * the client. `notes_seen` outlives the notes, so that a copy that comes later is not shown again.
 */
export const notesMigration = `
    CREATE TABLE notes (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      aid TEXT NOT NULL,
      message_id BLOB NOT NULL,
      sender TEXT NOT NULL,
      msg_type INTEGER NOT NULL,
      body BLOB NOT NULL,
      sent_at INTEGER NOT NULL,
      received_at INTEGER NOT NULL,
      -- What removes the copies that other nodes keep: the digest of the record, and its token.
      digest BLOB NOT NULL,
      token BLOB NOT NULL,
      size INTEGER NOT NULL,
      taken_at INTEGER,
      UNIQUE (aid, message_id)
    ) STRICT;
    CREATE INDEX notes_waiting ON notes (aid, id, sender, size) WHERE taken_at IS NULL;
    CREATE INDEX notes_taken ON notes (aid, taken_at) WHERE taken_at IS NOT NULL;

    CREATE TABLE notes_seen (
      aid TEXT NOT NULL,
      message_id BLOB NOT NULL,
      until INTEGER NOT NULL,
      PRIMARY KEY (aid, message_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX notes_seen_until ON notes_seen (until);

    -- Notes on their way out that nobody has acknowledged yet: the next attempt has the same id.
    CREATE TABLE notes_unsent (
      aid TEXT NOT NULL,
      fingerprint BLOB NOT NULL,
      nonce BLOB NOT NULL,
      sent_at INTEGER NOT NULL,
      PRIMARY KEY (aid, fingerprint)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX notes_unsent_at ON notes_unsent (sent_at);

    CREATE TRIGGER agents_notes AFTER DELETE ON agents BEGIN
      DELETE FROM notes WHERE aid = OLD.aid;
      DELETE FROM notes_seen WHERE aid = OLD.aid;
      DELETE FROM notes_unsent WHERE aid = OLD.aid;
    END;
`;
