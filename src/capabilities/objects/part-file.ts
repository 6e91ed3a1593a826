/** A download on its way: it grows under a name of its own, and gets its true one only when it is whole. */
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
   * Takes up what is there of a download, or begins it.
   * @throws SvcError `not_writable`
   */
  static async open(file: string): Promise<PartFile> {
    let handle: FileHandle | undefined;
    try {
      handle = await openPart(file);
      // The end came between its two names: these bytes are somebody's file by now, and not ours to change.
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

  /** True where what is here is the object. */
  is(objectId: string): boolean {
    return this.digest() === objectId;
  }

  /**
   * Gives the download its name, with its bytes on disk before. Never over another file but where `force` says so.
   * @param check throws where the target is no longer what it was: a download takes long
   * @throws SvcError `wrong_state` where something has this name, `not_writable`, and what `check` throws
   */
  async moveTo(target: string, force: boolean, check: () => Promise<void>): Promise<void> {
    try {
      await this.sync();
      await check();
      if (force) await rename(this.#file, target);
      else if (!(await moveWithoutReplacing(this.#file, target))) throw taken(target);
      syncDirectory(dirname(target));
    } catch (error) {
      throw writeError(error);
    }
  }

  /** Closes the file. A later download continues with its bytes; without any, the file is removed. */
  override async close(): Promise<void> {
    await this.flush().catch(() => {});
    await super.close();
    if (this.length === 0) await rm(this.#file, { force: true });
  }
}

/** What somebody hears whose file would be overwritten. */
export function taken(target: string): SvcError {
  return new SvcError('wrong_state', {
    message: 'There is another file of this name: choose another dest, or overwrite it with force.',
    details: { path: target },
  });
}

function openPart(file: string): Promise<FileHandle> {
  return open(file, constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0), PRIVATE_FILE_MODE);
}
