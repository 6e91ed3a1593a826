import { homedir } from 'node:os';
import path from 'node:path';
import { SvcError } from '../errors.ts';

/** What the place of the data directory depends on. */
interface Machine {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Asked for its home only where that is needed: a container may run as a user without one. */
const thisMachine: Machine = {
  platform: process.platform,
  environment: process.env,
  get home() {
    return homeDirectory();
  },
};

/**
 * The home directory of the user.
 * @throws SvcError `config_invalid` where there is none: a user without an entry in the list of users, and no HOME
 */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch (cause) {
    const message =
      'This user has no home directory. Set HOME, or name the data directory: "svcd --data-dir <dir>", or SVCD_DATA_DIR=<dir>.';
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
  // A relative one counts as unset: so says the XDG Base Directory Specification.
  const base = path.posix.isAbsolute(configured) ? configured : path.posix.join(machine.home, '.config');
  return path.posix.join(base, 'svcd');
}
