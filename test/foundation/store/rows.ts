import type { Migration } from '../../../src/foundation/store/store.ts';

/** A schema for tests of the store itself. */
export const ROWS: Migration = {
  version: 1,
  name: 'rows',
  sql: 'CREATE TABLE rows (id INTEGER PRIMARY KEY, pair INTEGER, data BLOB) STRICT',
};
