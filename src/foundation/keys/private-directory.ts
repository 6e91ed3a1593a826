/** A directory of small files that only their owner may read. */
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
import { syncDirectory, writeFileAtomic } from '../atomic-file.ts';
import { describeDiskError } from '../disk-errors.ts';
import { codeOf, SvcError } from '../errors.ts';
import { OTHERS_MODE, PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE } from '../file-modes.ts';
import type { Log } from '../log.ts';
import { makeDirectory } from '../make-directory.ts';
import { DeferredFiles } from './deferred-files.ts';

/** Larger files are none of ours. */
const MAX_FILE_BYTES = 16 * 1024;

export class PrivateDirectory {
  readonly #path: string;
  readonly #log: Log;
  readonly #late: DeferredFiles;

  private constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.#late = new DeferredFiles(path, { log, write: (file, text) => writeFileAtomic(join(path, file), text) });
  }

  /**
   * Opens a directory, and makes it where it is missing. What is ours and open to others is closed.
   * @throws SvcError `key_exposed` where others can read it and we cannot change that; `not_writable`
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
        message: `The directory ${path} cannot be made or read${describeDiskError(error)}${advice}`,
        cause: error,
      });
    }
    if (isOpenToOthers(path, found)) {
      tryTo(() => chmodSync(path, PRIVATE_DIRECTORY_MODE));
      if (isOpenToOthers(path, statSync(path))) throw exposed(path);
      log.warn({ path }, 'others could read this directory of keys: its mode is 0700 now');
    }
    return new PrivateDirectory(path, log);
  }

  /** Names of the files, in no order. @throws SvcError `not_writable` if the directory cannot be read */
  list(): string[] {
    try {
      return readdirSync(this.#path);
    } catch (error) {
      throw unreadable(this.#path, error);
    }
  }

  /**
   * The text of a file; null where there is none.
   * @throws SvcError `key_exposed` if it is another user's or a link, `key_damaged` if it is no key file,
   *   `not_writable` if the system does not let us read it: the file itself may be whole
   */
  read(file: string): string | null {
    const late = this.#late.get(file);
    if (late !== undefined) return late;
    const path = join(this.#path, file);
    let handle: number;
    try {
      // Windows has no O_NOFOLLOW, and no modes either.
      handle = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      if (codeOf(error) === 'ELOOP')
        throw new SvcError('key_exposed', { message: `${path} is a symbolic link: put the file itself there.` });
      throw unreadable(path, error);
    }
    try {
      const found = fstatSync(handle);
      if (!found.isFile() || found.size > MAX_FILE_BYTES) throw damaged(path, 'is no key file');
      if (isOpenToOthers(path, found)) {
        tryTo(() => fchmodSync(handle, PRIVATE_FILE_MODE));
        if (isOpenToOthers(path, fstatSync(handle))) throw exposed(path);
        this.#log.warn({ path }, 'others could read this key file: its mode is 0600 now');
      }
      return readFileSync(handle, 'utf8');
    } catch (error) {
      throw error instanceof SvcError ? error : unreadable(path, error);
    } finally {
      closeSync(handle);
    }
  }

  /** Writes a file as a whole, durably. @throws SvcError `not_writable` */
  write(file: string, text: string): void {
    writeFileAtomic(join(this.#path, file), text);
    this.#late.discard(file);
  }

  /** Writes a file as a whole, soon: `read` gives it from now on, and until `flush` a power cut may leave what was before. */
  writeDeferred(file: string, text: string): void {
    this.#late.put(file, text);
  }

  /** Makes all sure that was to be written soon. @throws SvcError `not_writable` */
  flush(): void {
    this.#late.flush();
  }

  /** Deletes a file durably; nothing happens where there is none. @throws SvcError `not_writable` */
  delete(file: string): void {
    this.#late.discard(file);
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

/** Whether it worked is looked at afterwards. */
function tryTo(change: () => void): void {
  try {
    change();
  } catch {
    // A disk that is mounted read-only, for example.
  }
}

/**
 * True where others than the owner may do something with it.
 * @throws SvcError `key_exposed` where the owner is another user
 */
function isOpenToOthers(path: string, found: Stats): boolean {
  const user = process.getuid?.();
  if (user === undefined) return false;
  if (found.uid !== user)
    throw new SvcError('key_exposed', { message: `${path} belongs to another user, who can read the keys in it.` });
  return (found.mode & OTHERS_MODE) !== 0;
}

function exposed(path: string): SvcError {
  return new SvcError('key_exposed', {
    message: `Others can read ${path}, and this file system does not let us change that. Choose another key_dir.`,
  });
}

/** The error of a file that the system does not let us read, for example because too many files are open. */
function unreadable(path: string, cause: unknown): SvcError {
  return new SvcError('not_writable', { message: `${path} cannot be read${describeDiskError(cause)}`, cause });
}

/** The error of a file that does not hold what it should. */
export function damaged(path: string, why: string, cause?: unknown): SvcError {
  return new SvcError('key_damaged', {
    message: `${path} ${why}. Restore it from a backup, or register the agent again.`,
    cause,
  });
}
