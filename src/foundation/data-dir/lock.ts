/**
 * The lock of a data directory. Node has no `flock`, and a file with a process id in it goes stale;
 * an exclusive SQLite transaction is a lock of the operating system, which ends with its process,
 * however that ends.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describeOpenError } from '../disk-errors.ts';
import { SvcError } from '../errors.ts';
import { PRIVATE_FILE_MODE } from '../file-modes.ts';

/**
 * On POSIX a process loses its locks on a file when it closes *any* descriptor of it: nothing else
 * in the daemon may open this file, a backup included.
 */
export const LOCK_FILE_NAME = 'lock.db';

const SQLITE_BUSY = 5;

export interface Lock {
  /** Gives the directory free. */
  release(): void;
}

/**
 * Takes the lock, without waiting; null where another process, or this one, holds it. Keep the
 * result: a lock that is garbage is released.
 * @throws SvcError `not_writable` where the file cannot be used
 */
export function acquireLock(directory: string): Lock | null {
  const file = join(directory, LOCK_FILE_NAME);
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { timeout: 0 });
    // Before the journal comes to be: SQLite gives it the mode of its database.
    chmodSync(file, PRIVATE_FILE_MODE);
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    db?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null;
    const why = describeOpenError(file) ?? ': check its permissions and the free space on the disk.';
    throw new SvcError('not_writable', {
      message: `The lock ${file} cannot be used${why} The data directory must be on a local disk; a damaged lock file may be deleted while no svcd runs.`,
      cause: error,
    });
  }
  const held = db;
  return { release: () => held.close() };
}
