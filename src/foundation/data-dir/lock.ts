/**
 * The lock of a data directory. Node has no `flock`, and a file with a process ID becomes outdated. An exclusive SQLite
 * transaction is a lock of the operating system, which ends with its process.
 */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { codeOf, SvcError } from '../errors.ts';
import { describeOpenError, PRIVATE_FILE_MODE } from '../files.ts';

/** True if a process with this ID runs on this machine. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user.
    return codeOf(error) === 'EPERM';
  }
}

/**
 * On POSIX a process loses its locks on a file when it closes *any* descriptor of the file: no other code in the daemon
 * may open it, including backups.
 */
export const LOCK_FILE_NAME = 'lock.db';

const SQLITE_BUSY = 5;

export interface Lock {
  /** Releases the directory. */
  release(): void;
}

/**
 * Acquires the lock without waiting. Null if another process, or this one, has it. Keep the result: garbage collection
 * releases the lock.
 * @throws SvcError `not_writable` if the file cannot be used
 */
export function acquireLock(directory: string): Lock | null {
  const file = join(directory, LOCK_FILE_NAME);
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { timeout: 0 });
    // Set before SQLite creates the journal, which gets the mode of the database.
    chmodSync(file, PRIVATE_FILE_MODE);
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    db?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null;
    const why = describeOpenError(file) ?? ': check its permissions and the free space on the disk.';
    throw new SvcError('not_writable', {
      message: `The lock ${file} cannot be used${why} The data directory must be on a local disk. You may delete a damaged lock file while svcd is stopped.`,
      cause: error,
    });
  }
  const held = db;
  return { release: () => held.close() };
}
