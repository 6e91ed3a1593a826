/**
 * Rooms: one replica of the log for each local agent that takes part. Times are Unix milliseconds,
 * ids are 32 bytes.
 */
export const roomsMigration = `
    CREATE TABLE rooms (
      -- AUTOINCREMENT: peers remember how far they have read a replica; its number is never used again.
      rid INTEGER PRIMARY KEY AUTOINCREMENT,
      aid TEXT NOT NULL,
      group_id BLOB NOT NULL,
      creator TEXT NOT NULL,
      title TEXT NOT NULL,
      -- joining, member, left, removed
      state TEXT NOT NULL,
      secret BLOB,
      -- Whom to ask while there is nobody in the log to ask: AIDs, separated by blanks.
      hints TEXT NOT NULL,
      epoch BLOB NOT NULL,
      max_seq INTEGER NOT NULL DEFAULT 0,
      read_seq INTEGER NOT NULL DEFAULT 0,
      last_at INTEGER NOT NULL,
      UNIQUE (aid, group_id)
    ) STRICT;

    CREATE TABLE room_entries (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      -- Order of arrival, 1, 2, 3 …: parents come before their children.
      seq INTEGER NOT NULL,
      entry_id BLOB NOT NULL,
      parents BLOB NOT NULL,
      depth INTEGER NOT NULL,
      author TEXT NOT NULL,
      kind TEXT NOT NULL,
      at INTEGER NOT NULL,
      reply_to BLOB,
      -- Place among the entries that decide who is a member.
      control_no INTEGER,
      -- Places of the newest such ancestors, four bytes each.
      frontier BLOB NOT NULL,
      -- Somebody else's entry that is worth reading; one that names the agent.
      counts INTEGER NOT NULL,
      mention INTEGER NOT NULL,
      -- Written beside the removal of its author: kept, and shown to nobody.
      void INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (rid, seq)
    ) STRICT;
    CREATE UNIQUE INDEX room_entries_id ON room_entries (rid, entry_id);
    CREATE INDEX room_entries_author ON room_entries (rid, author, seq);
    CREATE INDEX room_entries_kind ON room_entries (rid, kind, seq);
    CREATE INDEX room_entries_reply ON room_entries (rid, reply_to, seq) WHERE reply_to IS NOT NULL;
    CREATE INDEX room_entries_control ON room_entries (rid, control_no) WHERE control_no IS NOT NULL;
    CREATE INDEX room_entries_unread ON room_entries (rid, seq) WHERE counts = 1 AND void = 0;
    CREATE INDEX room_entries_mention ON room_entries (rid, seq) WHERE mention = 1 AND void = 0;

    CREATE TABLE room_heads (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      entry_id BLOB NOT NULL,
      PRIMARY KEY (rid, entry_id)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE room_mentions (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      aid TEXT NOT NULL,
      seq INTEGER NOT NULL,
      PRIMARY KEY (rid, aid, seq)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE room_retracts (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      target BLOB NOT NULL,
      seq INTEGER NOT NULL,
      -- Its author was an admin when it was written.
      by_admin INTEGER NOT NULL,
      PRIMARY KEY (rid, target, seq)
    ) STRICT, WITHOUT ROWID;

    -- Entries beside a removal of their author.
    CREATE TABLE room_conflicts (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      removal_no INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      PRIMARY KEY (rid, removal_no, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_conflicts_seq ON room_conflicts (rid, seq);

    -- How far the replica of another member has been read.
    CREATE TABLE room_peers (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      peer TEXT NOT NULL,
      epoch BLOB NOT NULL,
      seq INTEGER NOT NULL,
      PRIMARY KEY (rid, peer)
    ) STRICT, WITHOUT ROWID;

    -- Invitations on their way out, until they are answered.
    CREATE TABLE room_invites_out (
      rid INTEGER NOT NULL REFERENCES rooms ON DELETE CASCADE,
      target TEXT NOT NULL,
      next_at INTEGER NOT NULL,
      until INTEGER NOT NULL,
      attempts INTEGER NOT NULL,
      PRIMARY KEY (rid, target)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_invites_out_next ON room_invites_out (next_at);

    -- Invitations that came.
    CREATE TABLE room_invites_in (
      aid TEXT NOT NULL,
      group_id BLOB NOT NULL,
      inviter TEXT NOT NULL,
      creator TEXT NOT NULL,
      title TEXT NOT NULL,
      secret BLOB,
      at INTEGER NOT NULL,
      PRIMARY KEY (aid, group_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX room_invites_in_at ON room_invites_in (aid, at);
`;
