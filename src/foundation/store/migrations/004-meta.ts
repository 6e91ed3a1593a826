import type { Migration } from '../store.ts';

/** Single values of the node itself, as JSON text. */
export const metaMigration: Migration = {
  version: 4,
  name: 'meta',
  sql: `
    CREATE TABLE meta (
      key TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
  `,
};
