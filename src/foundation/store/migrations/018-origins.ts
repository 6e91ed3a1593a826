/** Local addresses of remote agents. `access_token` is kept so that they serve again after a restart without anyone there. */
export const originsMigration = `
    CREATE TABLE origins (
      id TEXT PRIMARY KEY,
      local_aid TEXT NOT NULL,
      remote_aid TEXT NOT NULL,
      access_token TEXT,
      port INTEGER NOT NULL UNIQUE,
      opened_at INTEGER NOT NULL,
      UNIQUE (local_aid, remote_aid)
    ) STRICT;
`;
