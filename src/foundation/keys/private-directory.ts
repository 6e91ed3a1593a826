/** A directory of small files that only their owner can read. */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf, SvcError } from '../errors.ts';
import {
  describeDiskError,
  makeDirectory,
  OTHERS_MODE,
  PRIVATE_DIRECTORY_MODE,
  PRIVATE_FILE_MODE,
  syncDirectory,
  writeFileAtomic,
} from '../files.ts';
import type { Log } from '../log.ts';
import { keepFromOthers } from '../windows-access.ts';

/** Larger files are not key files. */
const MAX_FILE_BYTES = 16 * 1024;

export class PrivateDirectory {
  readonly #path: string;
  readonly #log: Log;

  private constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /**
   * Opens a directory, and creates it if it is missing. Removes access for other users from our own files.
   * @throws SvcError `key_exposed` if others can read it and that cannot be changed; `not_writable`
   */
  static open(path: string, { log }: { readonly log: Log }): PrivateDirectory {
    let found: Stats;
    try {
      makeDirectory(path, PRIVATE_DIRECTORY_MODE);
      found = statSync(path);
      accessSync(path, constants.R_OK | constants.X_OK);
    } catch (error) {
      const advice = codeOf(error) === 'EACCES' ? ` If it is yours, run "chmod 700 ${path}".` : '';
      throw new SvcError('not_writable', {
        message: `The directory ${path} cannot be created or read${describeDiskError(error)}${advice}`,
        cause: error,
      });
    }
    keepFromOthers(path, true);
    if (isOpenToOthers(path, found)) {
      ignoreErrors(() => chmodSync(path, PRIVATE_DIRECTORY_MODE));
      if (isOpenToOthers(path, statSync(path))) throw exposed(path);
      log.warn({ path }, 'other users could read this key directory; its mode is now 0700');
    }
    return new PrivateDirectory(path, log);
  }

  /** File names in no particular order. @throws SvcError `not_writable` if the directory cannot be read */
  list(): string[] {
    try {
      return readdirSync(this.#path);
    } catch (error) {
      throw unreadable(this.#path, error);
    }
  }

  /**
   * The text of a file; null if it does not exist.
   * @throws SvcError `key_exposed` if it is a link or belongs to another user, `key_damaged` if it is not a key file,
   *   `not_writable` if it cannot be read but may be intact
   */
  read(file: string): string | null {
    const path = join(this.#path, file);
    let handle: number;
    try {
      // Windows has neither O_NOFOLLOW nor modes.
      handle = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      if (codeOf(error) === 'ELOOP')
        throw new SvcError('key_exposed', { message: `${path} is a symbolic link. Replace it with the file itself.` });
      throw unreadable(path, error);
    }
    try {
      const found = fstatSync(handle);
      if (!found.isFile() || found.size > MAX_FILE_BYTES) throw damaged(path, 'is not a key file');
      if (isOpenToOthers(path, found)) {
        ignoreErrors(() => fchmodSync(handle, PRIVATE_FILE_MODE));
        if (isOpenToOthers(path, fstatSync(handle))) throw exposed(path);
        this.#log.warn({ path }, 'other users could read this key file; its mode is now 0600');
      }
      return readFileSync(handle, 'utf8');
    } catch (error) {
      throw error instanceof SvcError ? error : unreadable(path, error);
    } finally {
      closeSync(handle);
    }
  }

  /** Writes a file atomically and durably. @throws SvcError `not_writable` */
  write(file: string, text: string): void {
    writeFileAtomic(join(this.#path, file), text);
  }

  /** Deletes a file durably, if it exists. @throws SvcError `not_writable` */
  delete(file: string): void {
    const path = join(this.#path, file);
    try {
      rmSync(path, { force: true });
      syncDirectory(this.#path);
    } catch (error) {
      throw new SvcError('not_writable', {
        message: `${path} cannot be deleted${describeDiskError(error)}`,
        cause: error,
      });
    }
  }
}

/** The caller checks the result afterwards. */
function ignoreErrors(change: () => void): void {
  try {
    change();
  } catch {
    // For example, a disk that is mounted read-only.
  }
}

/**
 * True if other users have any access.
 * @throws SvcError `key_exposed` if another user owns it
 */
function isOpenToOthers(path: string, found: Stats): boolean {
  const user = process.getuid?.();
  if (user === undefined) return false;
  if (found.uid !== user)
    throw new SvcError('key_exposed', {
      message: `${path} belongs to another user. Change its owner, or choose another key_dir.`,
    });
  return (found.mode & OTHERS_MODE) !== 0;
}

function exposed(path: string): SvcError {
  return new SvcError('key_exposed', {
    message: `Other users can read ${path}, and this file system does not allow svcd to change that. Choose another key_dir.`,
  });
}

/** The error for a file that cannot be read, for example because too many files are open. */
function unreadable(path: string, cause: unknown): SvcError {
  return new SvcError('not_writable', { message: `${path} cannot be read${describeDiskError(cause)}`, cause });
}

/** The error for a file with invalid content. */
export function damaged(path: string, why: string, cause?: unknown): SvcError {
  return new SvcError('key_damaged', {
    message: `${path} ${why}. Restore it from a backup, or register the agent again.`,
    cause,
  });
}
