/**
 * The folder of the objects and its boundary: any path that is opened must be a regular file whose real path is below
 * this folder. Symbolic links cannot lead outside, even if they are created between the check and the use.
 */
import { constants, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { describeDiskError, makeDirectory, PRIVATE_DIRECTORY_MODE } from '../../foundation/files.ts';

/** The folder of the daemon, below files_root. */
const DAEMON_DIRECTORY = '.svcd';

/**
 * Does not follow a symbolic link at the end of the path and does not block on a pipe. Some systems lack these flags.
 */
export const SAFE_READ_FLAGS: number = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

function badPath(path: string, message: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

export class FilesRoot {
  /** The real path of the folder. */
  readonly path: string;
  /** Stored bytes, by ID. */
  readonly objects: string;
  /** Uploads in progress. */
  readonly incoming: string;
  /** Downloads in progress or interrupted. */
  readonly parts: string;

  private constructor(path: string) {
    this.path = path;
    const own = join(path, DAEMON_DIRECTORY);
    this.objects = join(own, 'objects');
    this.incoming = join(own, 'incoming');
    this.parts = join(own, 'parts');
  }

  /**
   * Creates the folders if they do not exist.
   * @throws SvcError `not_writable`
   */
  static open(configured: string): FilesRoot {
    try {
      makeDirectory(configured, PRIVATE_DIRECTORY_MODE);
      const root = new FilesRoot(realpathSync(configured));
      for (const directory of [root.objects, root.incoming, root.parts]) {
        makeDirectory(directory, PRIVATE_DIRECTORY_MODE);
        if (realpathSync(directory) !== directory)
          throw new SvcError('not_writable', { message: `${directory} must not be a symbolic link.` });
      }
      return root;
    } catch (error) {
      throw writeError(error);
    }
  }

  /**
   * Opens a file that a client named, by an absolute path or relative to the folder.
   * @returns the open file, and its real path relative to the folder
   * @throws SvcError `not_found`, `invalid_request` if it is outside, in the folder of the daemon, or not a regular
   *   file
   */
  async open(path: string) {
    let handle: FileHandle | undefined;
    try {
      const real = await realpath(resolve(this.path, path));
      this.#checkInside(real, path);
      handle = await open(real, SAFE_READ_FLAGS);
      const opened = await handle.stat({ bigint: true });
      if (!opened.isFile()) throw badPath(path, 'Only a regular file can be an object.');
      // A parent directory may have been replaced by a link. The opened file must be the one at the real path.
      const there = await stat(real, { bigint: true });
      if ((await realpath(real)) !== real || there.ino !== opened.ino || there.dev !== opened.dev)
        throw badPath(path, 'The path changed while it was opened.');
      return { handle, path: relative(this.path, real) };
    } catch (error) {
      await handle?.close();
      throw lookupError(error, path);
    }
  }

  /**
   * Prepares a destination that a client named: creates its folder, which must be below files_root.
   * @returns the real path. It does not check whether a file exists there
   * @throws SvcError `invalid_request`, `not_writable`
   */
  async destination(path: string): Promise<string> {
    const wanted = resolve(this.path, path);
    const name = basename(wanted);
    if (name === '' || wanted.includes('\0') || wanted === this.path || path.endsWith('/') || path.endsWith(sep))
      throw badPath(path, 'The destination must name a file.');
    const directory = dirname(wanted);
    this.#checkInside(join(await this.#nearest(directory), name), path);
    try {
      await mkdir(directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
      const real = join(await realpath(directory), name);
      this.#checkInside(real, path);
      return real;
    } catch (error) {
      throw writeError(error);
    }
  }

  /**
   * Checks a destination again, immediately before a file is moved there.
   * @param real the result of `destination`
   * @throws SvcError `invalid_request` if a parent folder became a link, `not_writable` if it was removed
   */
  async checkDestination(real: string): Promise<void> {
    try {
      if (join(await realpath(dirname(real)), basename(real)) === real) return;
    } catch (error) {
      throw writeError(error);
    }
    throw badPath(real, 'The folder of the destination changed during the download.');
  }

  /** The real path of the nearest existing parent folder. Nothing is created until it is known to be inside. */
  async #nearest(directory: string): Promise<string> {
    try {
      return await realpath(directory);
    } catch {
      const above = dirname(directory);
      return above === directory ? above : join(await this.#nearest(above), basename(directory));
    }
  }

  #checkInside(real: string, shown: string): void {
    const inside = real.startsWith(this.path.endsWith(sep) ? this.path : this.path + sep);
    const own = join(this.path, DAEMON_DIRECTORY);
    if (!inside) throw badPath(shown, 'The path is outside files_root.');
    if (real === own || real.startsWith(own + sep))
      throw badPath(shown, `The folder ${DAEMON_DIRECTORY} in files_root is reserved for the daemon.`);
  }
}

// Converts file system errors to errors of the catalog.

/** The error for a failed write. */
export function writeError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError('not_writable', {
    message: `files_root cannot be written${describeDiskError(error)}`,
    details: { code: codeOf(error) },
    cause: error,
  });
}

/** Converts the error of disk work that fails. */
export function onDisk<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw writeError(error);
  });
}

/** The error for a file that a client named and that cannot be opened. */
function lookupError(error: unknown, path: string): SvcError {
  if (error instanceof SvcError) return error;
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new SvcError('not_found', {
      thing: 'file',
      message: 'File not found below files_root.',
      details: { path },
    });
  return new SvcError('invalid_request', {
    message: `The file cannot be read (${code}).`,
    details: { path },
    cause: error,
  });
}
