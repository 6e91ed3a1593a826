/** Bytes stored under their id: written beside, moved into place as a whole, the same bytes only once. */
import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../foundation/atomic-file.ts';
import { isSha256 } from '../../foundation/domain/hashes.ts';
import { codeOf } from '../../foundation/errors.ts';
import { PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';
import { onDisk, writeError } from './file-errors.ts';
import { FileSink } from './file-sink.ts';
import type { FilesRoot } from './files-root.ts';
import { fingerprintOf } from './fingerprint.ts';

/** A download that nobody took up again for this long is thrown away, milliseconds. */
const PART_AGE_MS = 7 * 24 * 3_600_000;

/** Bytes that are all here and on disk, but not yet an object. */
export interface Incoming {
  readonly objectId: string;
  readonly size: number;
  readonly file: string;
}

export class BlobStore {
  readonly #root: FilesRoot;

  constructor(root: FilesRoot) {
    this.#root = root;
  }

  /**
   * Path of the bytes of an object.
   * @throws RangeError if the id is not a SHA-256: a restored database may name anything
   */
  #pathOf(objectId: string): string {
    if (!isSha256(objectId)) throw new RangeError('not an id of an object');
    return join(this.#root.objects, objectId.slice(0, 2), objectId);
  }

  /**
   * Writes what a source gives to a file of its own, at the pace of the disk.
   * @param admit told of each chunk before it is written; what it throws ends the matter
   * @throws SvcError `not_writable`, what `admit` and the source throw; nothing is left behind
   */
  async receive(
    source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    admit: (bytes: number) => void,
  ): Promise<Incoming> {
    const file = join(this.#root.incoming, randomUUID());
    const sink = new FileSink(await onDisk(open(file, 'wx', PRIVATE_FILE_MODE)));
    try {
      for await (const chunk of source) {
        admit(chunk.length);
        await sink.append(chunk);
      }
      await sink.sync();
      await sink.close();
      return { objectId: sink.digest(), size: sink.length, file };
    } catch (error) {
      await sink.close();
      await this.discard({ file });
      throw error;
    }
  }

  /**
   * Moves bytes into place, and that onto the disk. Returns what they look like there. Synchronous, so
   * that no removal of the same bytes comes between this and the row that names them.
   * @throws SvcError `not_writable`
   */
  commit({ objectId, file }: Incoming): string {
    const target = this.#pathOf(objectId);
    try {
      if (mkdirSync(dirname(target), { recursive: true, mode: PRIVATE_DIRECTORY_MODE }) !== undefined)
        syncDirectory(this.#root.objects);
      renameSync(file, target);
      syncDirectory(dirname(target));
      return fingerprintOf(statSync(target, { bigint: true }));
    } catch (error) {
      throw writeError(error);
    }
  }

  async discard({ file }: Pick<Incoming, 'file'>): Promise<void> {
    await rm(file, { force: true }).catch(() => {});
  }

  /** Opens the bytes of an object; null where they are not there. */
  async open(objectId: string): Promise<FileHandle | null> {
    if (!isSha256(objectId)) return null;
    try {
      return await open(this.#pathOf(objectId), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP') return null;
      throw error;
    }
  }

  /** Removes the bytes of an object, in the same turn as the row that named them. */
  remove(objectId: string): void {
    if (isSha256(objectId)) rmSync(this.#pathOf(objectId), { force: true });
  }

  /**
   * Tidies up after a crash: what was under way. Stored bytes stay: they may be those of another database.
   * @param now Unix milliseconds
   */
  clean(now: number): void {
    for (const name of readdirSync(this.#root.incoming)) rmSync(join(this.#root.incoming, name), { force: true });
    for (const name of readdirSync(this.#root.parts)) {
      const file = join(this.#root.parts, name);
      if (now - statSync(file).mtimeMs > PART_AGE_MS) rmSync(file, { force: true });
    }
  }
}
