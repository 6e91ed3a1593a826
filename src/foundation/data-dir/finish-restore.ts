/**
 * The end of a restore: replaces the files of a data directory by the restored ones. Each step can be repeated, so the
 * next process with the lock continues an interrupted restore. `restore.new` is incomplete and ignored. `restore.ready`
 * is complete: the current files are moved to another directory. `restore.placing`: they were moved, and the restored
 * files are moved into place.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../errors.ts';
import { describeDiskError, PRIVATE_DIRECTORY_MODE, replaceFile, syncDirectory } from '../files.ts';
import { isAlive } from './lock.ts';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY, STATE_NUMBER_FILE } from './paths.ts';

// Leftovers of a killed backup: a copy of the database.

const NAME = /^backup-(\d+)\.tmp$/;

/** Temporary folder of a backup. Its name contains the process ID of the backup. */
export function backupDirectory(dataDir: string, pid: number): string {
  return join(dataDir, `backup-${pid}.tmp`);
}

/** Removes the copies of stopped processes. */
export function removeStaleBackups(dataDir: string): void {
  for (const name of readdirSync(dataDir)) {
    const pid = Number(NAME.exec(name)?.[1] ?? 0);
    if (pid > 0 && !isAlive(pid)) rmSync(join(dataDir, name), { recursive: true, force: true });
  }
}

export const STAGING = 'restore.new';
export const READY = 'restore.ready';
const PLACING = 'restore.placing';
/** In `restore.ready`: the name of the directory for the previous files. */
export const REPLACES_FILE = 'replaces';
/** The replaced files. Stored records of other nodes and all other files are kept. */
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
 * Finishes an interrupted restore, if there is one. The caller holds the lock of the directory.
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
      replaceFile(at(READY), at(PLACING));
      syncDirectory(directory);
    }
    if (!existsSync(at(PLACING))) return;
    rmSync(join(at(PLACING), REPLACES_FILE), { force: true });
    for (const name of readdirSync(at(PLACING))) replaceFile(join(at(PLACING), name), at(name));
    syncDirectory(directory);
    rmdirSync(at(PLACING));
  } catch (error) {
    throw new SvcError('not_writable', {
      message: `A restore in ${directory} could not be finished${describeDiskError(error)} Fix the cause and start again. No data is lost.`,
      cause: error,
    });
  }
}

function move(from: string, aside: string, name: string): void {
  mkdirSync(aside, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  replaceFile(from, join(aside, name));
  syncDirectory(aside);
}
