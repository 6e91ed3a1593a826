import { homedir } from 'node:os';
import path from 'node:path';

/** What the place of the data directory depends on. */
interface Machine {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/**
 * `svcd` in the user's configuration directory: `%APPDATA%` on Windows, `~/Library/Application
 * Support` on macOS, `$XDG_CONFIG_HOME` or `~/.config` elsewhere.
 */
export function defaultDataDir(
  machine: Machine = { platform: process.platform, environment: process.env, home: homedir() },
): string {
  const { platform, environment, home } = machine;
  if (platform === 'win32') {
    return path.win32.join(environment['APPDATA'] || path.win32.join(home, 'AppData', 'Roaming'), 'svcd');
  }
  if (platform === 'darwin') return path.posix.join(home, 'Library', 'Application Support', 'svcd');
  const configured = environment['XDG_CONFIG_HOME'] ?? '';
  // A relative one counts as unset: so says the XDG Base Directory Specification.
  return path.posix.join(path.posix.isAbsolute(configured) ? configured : path.posix.join(home, '.config'), 'svcd');
}
