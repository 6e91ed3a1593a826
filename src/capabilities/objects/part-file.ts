/** A download in progress. It has a temporary name and is renamed when it is complete. */
import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from '../../foundation/atomic-file.ts';
import { SvcError } from '../../foundation/errors.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';
import { moveWithoutReplacing } from '../../foundation/move-without-replacing.ts';
import { writeError } from './file-errors.ts';
import { FileSink } from './file-sink.ts';
import { hashInto } from './fingerprint.ts';

export class PartFile extends FileSink {
  readonly #file: string;

  private constructor(file: string, handle: FileHandle, hash: Hash, length: number) {
    super(handle, hash, length);
    this.#file = file;
  }

  /**
   * Opens an interrupted download, or starts a new one.
   * @throws SvcError `not_writable`
   */
  static async open(file: string): Promise<PartFile> {
    let handle: FileHandle | undefined;
    try {
      handle = await openPart(file);
      // After a crash between linking and unlinking, these bytes already belong to a finished file and must not change.
      if ((await handle.stat()).nlink > 1) {
        await handle.close();
        await rm(file);
        handle = await openPart(file);
      }
      const hash = createHash('sha256');
      return new PartFile(file, handle, hash, await hashInto(hash, handle));
    } catch (error) {
      await handle?.close();
      throw writeError(error);
    }
  }

  /** Whether the downloaded bytes are the object. */
  is(objectId: string): boolean {
    return this.digest() === objectId;
  }

  /**
   * Syncs the download and renames it. Overwrites another file only if `force` is true.
   * @param check throws if the target has changed, because a download takes long
   * @throws SvcError `wrong_state` if another file has this name, `not_writable`, and the errors of `check`
   */
  async moveTo(target: string, force: boolean, check: () => Promise<void>): Promise<void> {
    try {
      await this.sync();
      await check();
      if (force) await rename(this.#file, target);
      else if (!(await moveWithoutReplacing(this.#file, target))) throw fileExistsError(target);
      syncDirectory(dirname(target));
    } catch (error) {
      throw writeError(error);
    }
  }

  /** Closes the file. A later download continues it. If it is empty, it is removed. */
  override async close(): Promise<void> {
    await this.flush().catch(() => {});
    await super.close();
    if (this.length === 0) await rm(this.#file, { force: true });
  }
}

/** The error for a download that would overwrite a file. */
export function fileExistsError(target: string): SvcError {
  return new SvcError('wrong_state', {
    message: 'Another file has this name. Choose another dest, or overwrite it with force.',
    details: { path: target },
  });
}

function openPart(file: string): Promise<FileHandle> {
  return open(file, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), PRIVATE_FILE_MODE);
}
