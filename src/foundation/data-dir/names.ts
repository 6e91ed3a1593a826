/** What the files of a data directory are called, there and in the archive of a node. */

export const DATABASE_FILE = 'svcd.db';
export const CONFIG_FILE = 'config.toml';
/** Leads a browser to the panel, with a code that opens it: there for a minute at most. */
export const PANEL_FILE = 'panel-open.html';
/** The directory of the key files, unless `key_dir` names another. */
export const KEYS_DIRECTORY = 'keys';
