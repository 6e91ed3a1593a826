/** Names of files in a data directory, and in the archive of a node. */

export const DATABASE_FILE = 'svcd.db';
/** Counts marks in the database, to notice if the database is older than before. */
export const STATE_NUMBER_FILE = 'svcd.db-number';
export const CONFIG_FILE = 'config.toml';
/** Opens the panel in a browser with a code. It exists for at most one minute. */
export const PANEL_FILE = 'panel-open.html';
/** Default folder of the key files, without `key_dir`. */
export const KEYS_DIRECTORY = 'keys';
