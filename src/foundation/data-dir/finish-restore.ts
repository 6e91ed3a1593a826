/**
 * The end of a restore: what lies ready in a data directory takes the place of what is there. Each
 * step can be done again, so whoever holds the lock next goes on where the one before was ended.
 *
 * `restore.new` is being written and counts for nothing. `restore.ready` is whole: what is there is
 * moved aside. `restore.placing`: it is aside, and what was ready is moved into place.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../atomic-file.ts';
import { describeDiskError } from '../disk-errors.ts';
import { SvcError } from '../errors.ts';
import { PRIVATE_DIRECTORY_MODE } from '../file-modes.ts';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY, STATE_NUMBER_FILE } from './names.ts';

export const STAGING = 'restore.new';
export const READY = 'restore.ready';
const PLACING = 'restore.placing';
/** In `restore.ready`: the name of the directory that takes what was there before. */
export const REPLACES_FILE = 'replaces';
/** What a restore replaces. What is kept of others' records stays, and so does everything else. */
export const REPLACED: readonly string[] = [
  DATABASE_FILE,
  `${DATABASE_FILE}-wal`,
  `${DATABASE_FILE}-shm`,
  STATE_NUMBER_FILE,
  CONFIG_FILE,
  `${CONFIG_FILE}.bak`,
  KEYS_DIRECTORY,
];

/**
 * Finishes a restore that was ended on its way, or does nothing. The lock of the directory is held.
 * @throws SvcError `not_writable`
 */
export function finishRestore(directory: string): void {
  const at = (name: string): string => join(directory, name);
  try {
    rmSync(at(STAGING), { recursive: true, force: true });
    if (existsSync(at(READY))) {
      const aside = at(readFileSync(join(at(READY), REPLACES_FILE), 'utf8'));
      for (const name of REPLACED) if (existsSync(at(name))) move(at(name), aside, name);
      syncDirectory(directory);
      renameSync(at(READY), at(PLACING));
      syncDirectory(directory);
    }
    if (!existsSync(at(PLACING))) return;
    rmSync(join(at(PLACING), REPLACES_FILE), { force: true });
    for (const name of readdirSync(at(PLACING))) renameSync(join(at(PLACING), name), at(name));
    syncDirectory(directory);
    rmdirSync(at(PLACING));
  } catch (error) {
    throw new SvcError('not_writable', {
      message: `A restore in ${directory} could not be finished${describeDiskError(error)} Fix that and start again: nothing is lost.`,
      cause: error,
    });
  }
}

function move(from: string, aside: string, name: string): void {
  mkdirSync(aside, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  renameSync(from, join(aside, name));
  syncDirectory(aside);
}
