/** Single values of the node itself, as JSON text. */
export const metaMigration = `
    CREATE TABLE meta (
      key TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
`;
