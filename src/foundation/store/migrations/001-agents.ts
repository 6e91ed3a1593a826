/**
 * The local agents. Their keys are files of the key store; `key_name` says which. `issued_at` and
 * `expires_at` repeat what the delegation says, Unix seconds; the other times are milliseconds.
 */
export const agentsMigration = `
    CREATE TABLE agents (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      aid TEXT NOT NULL UNIQUE,
      key_name TEXT NOT NULL UNIQUE,
      operational_key BLOB NOT NULL,
      delegation BLOB NOT NULL,
      issued_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      service_tcp TEXT NOT NULL DEFAULT '',
      registered_at INTEGER NOT NULL,
      heartbeat_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX agents_bound ON agents (service_tcp) WHERE service_tcp <> '';
`;
