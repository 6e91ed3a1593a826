/** The newest delegation met of each agent, so that an older one stays refused after a restart. */
export const delegationsMigration = `
    CREATE TABLE seen_delegations (
      aid TEXT PRIMARY KEY,
      -- Unix seconds.
      issued_at INTEGER NOT NULL,
      -- Milliseconds since the Unix epoch.
      seen_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX seen_delegations_age ON seen_delegations (seen_at);
`;
