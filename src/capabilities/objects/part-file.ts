/** A download on its way: it grows under a name of its own, and gets its true one only when it is whole. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from '../../foundation/atomic-file.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';
import { writeError } from './file-errors.ts';
import { FileSink, type ReleaseChunk } from './file-sink.ts';
import { hashInto } from './fingerprint.ts';

/** File systems without hard links say so in these ways. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

export class PartFile {
  readonly #file: string;
  readonly #sink: FileSink;

  private constructor(file: string, sink: FileSink) {
    this.#file = file;
    this.#sink = sink;
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
      return new PartFile(file, new FileSink(handle, hash, await hashInto(hash, handle)));
    } catch (error) {
      await handle?.close();
      throw writeError(error);
    }
  }

  /** Bytes that are here. */
  get length(): number {
    return this.#sink.length;
  }

  /** True where what is here is the object. */
  is(objectId: string): boolean {
    return this.#sink.digest() === objectId;
  }

  /**
   * Takes a piece, as `FileSink.append`.
   * @throws SvcError `not_writable`
   */
  append(chunk: Uint8Array, release?: ReleaseChunk): Promise<void> {
    return this.#sink.append(chunk, release);
  }

  /** Throws away what is here. */
  reset(): Promise<void> {
    return this.#sink.reset();
  }

  /**
   * Gives the download its name, with its bytes on disk before. Never over another file but where `force` says so.
   * @param check throws where the target is no longer what it was: a download takes long
   * @throws SvcError `wrong_state` where something has this name, `not_writable`, and what `check` throws
   */
  async moveTo(target: string, force: boolean, check: () => Promise<void>): Promise<void> {
    try {
      await this.#sink.sync();
      await check();
      if (force) await rename(this.#file, target);
      else await moveToFreeName(this.#file, target);
      syncDirectory(dirname(target));
    } catch (error) {
      if (codeOf(error) === 'EEXIST') throw taken(target);
      throw writeError(error);
    }
  }

  /** Closes the file with all that was taken in it, so that a later download can take it up. */
  async close(): Promise<void> {
    await this.#sink.flush().catch(() => {});
    await this.#sink.close();
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

async function moveToFreeName(file: string, target: string): Promise<void> {
  try {
    // Unlike a renaming this never replaces anything.
    await link(file, target);
    await rm(file);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error))) throw error;
    if ((await lstat(target).catch(() => null)) !== null) throw taken(target);
    await rename(file, target);
  }
}
