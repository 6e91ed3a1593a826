/** Tunnels that are opened again after a restart. `access_token` is kept so that they open without anyone there. */
export const tunnelsMigration = `
    CREATE TABLE tunnels (
      id TEXT PRIMARY KEY,
      local_aid TEXT NOT NULL,
      remote_aid TEXT NOT NULL,
      access_token TEXT,
      local_port INTEGER NOT NULL UNIQUE,
      idle_timeout_s INTEGER NOT NULL,
      disable_relay INTEGER NOT NULL
    ) STRICT;
`;
