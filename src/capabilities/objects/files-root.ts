/**
 * The folder that objects live in, and the guard of its borders: whatever path comes in, what is
 * opened is a regular file whose real place is below this folder. A symbolic link leads nowhere
 * else, not even one that is put there between the check and the use.
 */
import { constants, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { PRIVATE_DIRECTORY_MODE } from '../../foundation/file-modes.ts';
import { makeDirectory } from '../../foundation/make-directory.ts';
import { lookupError, writeError } from './file-errors.ts';

/** Ours alone, below files_root. */
const OWN_DIRECTORY = '.svcd';

/** Not on every system: neither following a link at the end of a path nor waiting for the other end of a pipe. */
export const READ_CAREFULLY: number = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

function badPath(path: string, message: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

export class FilesRoot {
  /** The real path of the folder. */
  readonly path: string;
  /** Bytes stored under their id. */
  readonly objects: string;
  /** Uploads that are under way. */
  readonly incoming: string;
  /** Downloads that are under way, or wait to be taken up. */
  readonly parts: string;

  private constructor(path: string) {
    this.path = path;
    const own = join(path, OWN_DIRECTORY);
    this.objects = join(own, 'objects');
    this.incoming = join(own, 'incoming');
    this.parts = join(own, 'parts');
  }

  /**
   * Makes the folder and ours in it where they are not there yet.
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
   * Opens a file that somebody named, absolute or relative to the folder.
   * @returns it, open for reading, and its real place relative to the folder
   * @throws SvcError `not_found`, `invalid_request` where it is outside, ours, or no regular file
   */
  async open(path: string) {
    let handle: FileHandle | undefined;
    try {
      const real = await realpath(resolve(this.path, path));
      this.#checkInside(real, path);
      handle = await open(real, READ_CAREFULLY);
      const opened = await handle.stat({ bigint: true });
      if (!opened.isFile()) throw badPath(path, 'Only a regular file can be an object.');
      // A directory on the way may have become a link in between: what was opened must be what is there.
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
   * Where a file that somebody names may be made: its folder is made and is below ours.
   * @returns the real path; whether something is there already is not looked at
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
   * Looks at a destination again, right before something is put there.
   * @param real what `destination` gave
   * @throws SvcError `invalid_request` where a folder on the way has become a link, `not_writable` where it is gone
   */
  async checkDestination(real: string): Promise<void> {
    try {
      if (join(await realpath(dirname(real)), basename(real)) === real) return;
    } catch (error) {
      throw writeError(error);
    }
    throw badPath(real, 'The folder of the destination changed during the download.');
  }

  /** The real path of the nearest folder above that is there: nothing may be made before it is known to be inside. */
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
    const own = join(this.path, OWN_DIRECTORY);
    if (!inside) throw badPath(shown, 'The path leads out of files_root.');
    if (real === own || real.startsWith(own + sep))
      throw badPath(shown, `The folder ${OWN_DIRECTORY} in files_root belongs to the daemon.`);
  }
}
