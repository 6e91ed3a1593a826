/** The address of the daemon for local programs. */
import { resolve } from 'node:path';
import { SvcError } from '../errors.ts';
import { readDaemonInfo } from './daemon-info.ts';
import { isAlive } from './process.ts';

const DEFAULT_API = 'http://127.0.0.1:2121';

/** The address in daemon.json. After a crash it is that of the crashed daemon. */
export function recordedDaemonAddress(dataDir: string | null): string {
  const address = (dataDir === null ? null : readDaemonInfo(dataDir))?.api_addr ?? null;
  return address === null ? DEFAULT_API : `http://${address}`;
}

/**
 * The address of the daemon of a named directory. Neither the default address nor that of a crashed daemon is used,
 * because another node may have it.
 * @returns the error `daemon_unreachable` if there is none
 */
export function runningDaemonAddress(dataDir: string): string | SvcError {
  const directory = resolve(dataDir);
  const info = readDaemonInfo(directory);
  const isThere = info !== null && isAlive(info.pid);
  if (isThere && info.api_addr !== null) return `http://${info.api_addr}`;
  const message = isThere
    ? `The daemon of ${directory} (process ${info.pid}) is still starting, or has no API.`
    : `No daemon runs on ${directory} (SVCD_DATA_DIR). Start it with "svcd", or give its address with --api.`;
  return new SvcError('daemon_unreachable', { message });
}
