import { homedir } from 'node:os';
import path from 'node:path';
import { SvcError } from '../errors.ts';

// Names of files in a data directory, and in the archive of a node.

export const DATABASE_FILE = 'svcd.db';
/** Counts marks in the database, to notice if the database is older than before. */
export const STATE_NUMBER_FILE = 'svcd.db-number';
export const CONFIG_FILE = 'config.toml';
/** Opens the panel in a browser with a code. It exists for at most one minute. */
export const PANEL_FILE = 'panel-open.html';
/** Files of programs that hooks started. */
export const HOOKS_DIRECTORY = 'hooks';
/** Files of running services that start on demand. */
export const ON_DEMAND_DIRECTORY = 'on-demand';
/** Default folder of the key files, without `key_dir`. */
export const KEYS_DIRECTORY = 'keys';

/** All files that svcd writes to its data directory, by their beginnings. Shared files are not among them. */
export const OWN_FILES =
  /^(?:(?:svcd|records|lock)\.db|daemon\.json|config\.toml|svc-use|panel-open|keys$|hooks$|on-demand$|releases$|restore\.|backup-|\.doctor-)/;

/** The name of the service. */
export const SERVICE_NAME = 'svcd';

/** The unit of the service under systemd. @param configHome of the user; null for a service of the machine */
export function systemdUnitFile(configHome: string | null): string {
  const folder = configHome === null ? '/etc/systemd/system' : path.posix.join(configHome, 'systemd/user');
  return path.posix.join(folder, `${SERVICE_NAME}.service`);
}

/** The definition of the service under launchd. */
export function launchdFile(home: string): string {
  return path.posix.join(home, 'Library/LaunchAgents', `${SERVICE_NAME}.plist`);
}

/** Inputs for the path of the data directory. */
interface Machine {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Called only if necessary: a container may run as a user without a home directory. */
const thisMachine: Machine = {
  platform: process.platform,
  environment: process.env,
  get home() {
    return homeDirectory();
  },
};

/**
 * The home directory of the user.
 * @throws SvcError `config_invalid` if there is none: the user has no entry in the user database, and HOME is not set
 */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch (cause) {
    const message =
      'This user has no home directory. Set HOME, or give the data directory with "svcd --data-dir <dir>" or SVCD_DATA_DIR=<dir>.';
    throw new SvcError('config_invalid', { message, cause });
  }
}

/**
 * `svcd` in the user's configuration directory: `%APPDATA%` on Windows, `~/Library/Application
 * Support` on macOS, `$XDG_CONFIG_HOME` or `~/.config` elsewhere.
 */
export function defaultDataDir(machine: Machine = thisMachine): string {
  const { platform, environment } = machine;
  if (platform === 'win32') {
    return path.win32.join(environment['APPDATA'] || path.win32.join(machine.home, 'AppData', 'Roaming'), 'svcd');
  }
  if (platform === 'darwin') return path.posix.join(machine.home, 'Library', 'Application Support', 'svcd');
  const configured = environment['XDG_CONFIG_HOME'] ?? '';
  // The XDG Base Directory Specification requires to ignore relative paths.
  const base = path.posix.isAbsolute(configured) ? configured : path.posix.join(machine.home, '.config');
  return path.posix.join(base, 'svcd');
}
