/** Where the daemon answers that a command is meant for. */
import { resolve } from 'node:path';
import { readDaemonInfo } from '../../foundation/data-dir/daemon-info.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isAlive } from './doctor/process.ts';

const DEFAULT_API = 'http://127.0.0.1:2121';

/** The address that the daemon of a data directory wrote down; where it crashed, that of the dead one. */
export function addressIn(dataDir: string): string {
  const address = readDaemonInfo(dataDir)?.api_addr;
  return address === undefined || address === null ? DEFAULT_API : `http://${address}`;
}

function absence(message: string): SvcError {
  return new SvcError('daemon_unreachable', { message });
}

/**
 * The address of the daemon of a directory that somebody named. Any other daemon would be the wrong
 * one: neither the default address nor what a dead daemon left behind will do, since another node may have it.
 * @returns the error `daemon_unreachable` where there is none
 */
export function addressInNamed(dataDir: string): string | SvcError {
  const directory = resolve(dataDir);
  const info = readDaemonInfo(directory);
  if (info === null || !isAlive(info.pid))
    return absence(
      `No daemon runs on ${directory}, which SVCD_DATA_DIR names. Start it with "svcd", or say where it answers with --api.`,
    );
  if (info.api_addr === null)
    return absence(`The daemon of ${directory} (process ${info.pid}) is starting, or serves no API.`);
  return `http://${info.api_addr}`;
}
