/** A schema for tests of the store. */
export const ROWS = 'CREATE TABLE rows (id INTEGER PRIMARY KEY, pair INTEGER, data BLOB) STRICT';
