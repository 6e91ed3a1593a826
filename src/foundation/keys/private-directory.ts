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
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { detach } from '../detached.ts';
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

// Writes files of a private directory in the background. The caller must be able to recreate a file until it is
// durable. Each file is replaced atomically, and files written together share one sync of the directory.

/** Maximum number of concurrent writes, which use descriptors and threads of the pool. */
const MAX_CONCURRENT_WRITES = 32;
/**
 * Delay before writing, in milliseconds. The caller usually has other work to do first, and files that arrive meanwhile
 * share the directory sync.
 */
const WRITE_AFTER_MS = 50;

interface DeferredFilesDependencies {
  readonly log: Log;
  /** Writes a file durably before it returns. @throws SvcError `not_writable` */
  readonly write: (file: string, text: string) => void;
}

class DeferredFiles {
  readonly #path: string;
  readonly #deps: DeferredFilesDependencies;
  /** Names and contents of files that are not durable yet. */
  readonly #pending = new Map<string, string>();
  #isWriting = false;

  /** @param path of the directory */
  constructor(path: string, dependencies: DeferredFilesDependencies) {
    this.#path = path;
    this.#deps = dependencies;
  }

  /** The content of a file that is not durable yet; undefined for others. */
  get(file: string): string | undefined {
    return this.#pending.get(file);
  }

  /** Schedules a write. */
  put(file: string, text: string): void {
    this.#pending.set(file, text);
    if (this.#isWriting) return;
    this.#isWriting = true;
    setTimeout(() => detach(this.#writeAll()), WRITE_AFTER_MS);
  }

  /** Cancels a scheduled write, because the file was written otherwise or will be deleted. */
  discard(file: string): void {
    this.#pending.delete(file);
  }

  /**
   * Writes all scheduled files durably before it returns. @throws SvcError `not_writable`; the remaining files stay
   * scheduled
   */
  flush(): void {
    for (const [file, text] of this.#pending) {
      this.#deps.write(file, text);
      this.#pending.delete(file);
    }
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#pending.size > 0) {
        const batch = this.#pending.entries().take(MAX_CONCURRENT_WRITES).toArray();
        await Promise.all(batch.map(([file, text]) => this.#write(file, text)));
        await this.#syncNames();
        for (const [file, text] of batch) if (this.#pending.get(file) === text) this.#pending.delete(file);
      }
    } catch (error) {
      // The files stay scheduled for the next `put` or `flush`.
      this.#deps.log.warn({ error }, 'keys could not be written, svcd will retry');
    } finally {
      this.#isWriting = false;
    }
  }

  async #write(file: string, text: string): Promise<void> {
    const temporary = join(this.#path, `late-${file}.tmp`);
    await rm(temporary, { force: true });
    // "wx" fails if a link was created here meanwhile, so the write cannot follow it.
    const handle = await open(temporary, 'wx', PRIVATE_FILE_MODE);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // The file may have been written otherwise or deleted meanwhile. The check and the rename are synchronous, so
    // nothing can happen between them.
    if (this.#pending.get(file) === text) renameSync(temporary, join(this.#path, file));
    else await rm(temporary, { force: true });
  }

  async #syncNames(): Promise<void> {
    if (process.platform === 'win32') return;
    const directory = await open(this.#path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

/** Larger files are not key files. */
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
    const late = this.#late.get(file);
    if (late !== undefined) return late;
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
    this.#late.discard(file);
  }

  /**
   * Schedules an atomic write. `read` returns the new text immediately. Until `flush`, a power failure may leave the
   * old content.
   */
  writeDeferred(file: string, text: string): void {
    this.#late.put(file, text);
  }

  /** Completes all scheduled writes. @throws SvcError `not_writable` */
  flush(): void {
    this.#late.flush();
  }

  /** Deletes a file durably, if it exists. @throws SvcError `not_writable` */
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
