/**
 * Conversations of local agents. Times are Unix milliseconds.
 *
 * A pair is a local agent and a peer. `out_stream` and `in_stream` name what each side sends in this
 * relationship; `acked` and `received` count what has arrived of each. `control` is what the peer
 * has yet to be told. The queue is the entries of status 1, in the order of `seq`.
 */
export const chatMigration = `
    CREATE TABLE chat_pairs (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      aid TEXT NOT NULL,
      peer TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('none', 'friends', 'out_pending', 'in_pending', 'blocked')),
      since INTEGER NOT NULL,
      note TEXT NOT NULL DEFAULT '',
      expires_at INTEGER,
      origin TEXT,
      out_stream BLOB,
      acked INTEGER NOT NULL DEFAULT 0,
      in_stream BLOB,
      received INTEGER NOT NULL DEFAULT 0,
      control TEXT CHECK (control IN ('request', 'accept', 'gone')),
      control_until INTEGER,
      gone_out BLOB,
      gone_in BLOB,
      queued INTEGER NOT NULL DEFAULT 0,
      queued_bytes INTEGER NOT NULL DEFAULT 0,
      last_seq INTEGER NOT NULL DEFAULT 0,
      last_at INTEGER,
      read_cursor INTEGER NOT NULL DEFAULT 0,
      unread INTEGER NOT NULL DEFAULT 0,
      unread_bytes INTEGER NOT NULL DEFAULT 0,
      UNIQUE (aid, peer)
    ) STRICT;
    CREATE INDEX chat_pairs_state ON chat_pairs (aid, state, since);
    CREATE INDEX chat_pairs_invites ON chat_pairs (aid, origin) WHERE state = 'in_pending';
    CREATE INDEX chat_pairs_unread ON chat_pairs (aid, unread) WHERE unread > 0;
    CREATE INDEX chat_pairs_work ON chat_pairs (id) WHERE control IS NOT NULL OR queued > 0;
    CREATE INDEX chat_pairs_expiry ON chat_pairs (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX chat_pairs_control ON chat_pairs (control_until) WHERE control_until IS NOT NULL;
    CREATE INDEX chat_pairs_recent ON chat_pairs (coalesce(last_at, since)) WHERE state = 'friends';

    CREATE TABLE chat_entries (
      pair INTEGER NOT NULL REFERENCES chat_pairs (id) ON DELETE CASCADE,
      seq INTEGER NOT NULL,
      id BLOB NOT NULL,
      incoming INTEGER NOT NULL,
      -- 0 received, 1 queued, 2 sent, 3 dropped
      status INTEGER NOT NULL,
      at INTEGER NOT NULL,
      text TEXT,
      object_id TEXT,
      name TEXT,
      size INTEGER,
      bytes INTEGER NOT NULL,
      UNIQUE (pair, seq),
      UNIQUE (pair, id)
    ) STRICT;
    CREATE INDEX chat_entries_queue ON chat_entries (pair, seq) WHERE status = 1;
    CREATE INDEX chat_entries_incoming ON chat_entries (pair, seq, bytes) WHERE incoming = 1;

    CREATE TRIGGER agents_chat AFTER DELETE ON agents BEGIN
      DELETE FROM chat_pairs WHERE aid = OLD.aid;
    END;
`;
