/** What the files of a data directory are called, there and in the archive of a node. */

export const DATABASE_FILE = 'svcd.db';
/** How often the database was marked, to notice that it is older than it was. */
export const STATE_NUMBER_FILE = 'svcd.db-number';
export const CONFIG_FILE = 'config.toml';
/** Leads a browser to the panel, with a code that opens it: there for a minute at most. */
export const PANEL_FILE = 'panel-open.html';
/** The directory of the key files, unless `key_dir` names another. */
export const KEYS_DIRECTORY = 'keys';
