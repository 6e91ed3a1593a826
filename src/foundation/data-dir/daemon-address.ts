/** Where the daemon answers that a program of this machine is meant to talk to. */
import { resolve } from 'node:path';
import { SvcError } from '../errors.ts';
import { readDaemonInfo } from './daemon-info.ts';
import { isAlive } from './process.ts';

const DEFAULT_API = 'http://127.0.0.1:2121';

/** The address that the daemon of a data directory wrote down; where it crashed, that of the dead one. */
export function recordedDaemonAddress(dataDir: string | null): string {
  const address = (dataDir === null ? null : readDaemonInfo(dataDir))?.api_addr ?? null;
  return address === null ? DEFAULT_API : `http://${address}`;
}

/**
 * The address of the daemon of a directory that somebody named. Any other daemon would be the wrong
 * one: neither the default address nor what a dead daemon left behind will do, since another node may have it.
 * @returns the error `daemon_unreachable` where there is none
 */
export function runningDaemonAddress(dataDir: string): string | SvcError {
  const directory = resolve(dataDir);
  const info = readDaemonInfo(directory);
  const isThere = info !== null && isAlive(info.pid);
  if (isThere && info.api_addr !== null) return `http://${info.api_addr}`;
  const message = isThere
    ? `The daemon of ${directory} (process ${info.pid}) is starting, or serves no API.`
    : `No daemon runs on ${directory}, which SVCD_DATA_DIR names. Start it with "svcd", or say where it answers with --api.`;
  return new SvcError('daemon_unreachable', { message });
}
