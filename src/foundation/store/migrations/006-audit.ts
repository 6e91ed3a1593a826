/** What was asked over remote administration, and who was not let in. */
export const auditMigration = `
    CREATE TABLE admin_audit (
      id       INTEGER PRIMARY KEY AUTOINCREMENT,
      -- Each kind has a room of its own: neither refused strangers nor harmless reads push out the writes.
      kind     TEXT NOT NULL CHECK (kind IN ('read', 'write', 'refused')),
      -- Milliseconds since the Unix epoch.
      at       INTEGER NOT NULL,
      caller   TEXT NOT NULL,
      node_key TEXT,
      address  TEXT,
      method   TEXT,
      path     TEXT,
      status   INTEGER,
      reason   TEXT,
      CHECK ((kind = 'refused') = (reason IS NOT NULL))
    ) STRICT;

    CREATE INDEX admin_audit_kind ON admin_audit (kind, id);
`;
