/**
 * Stores bytes under their hash. Files are written under a temporary name and then renamed. Equal bytes are stored
 * once.
 */
import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isSha256 } from '../../foundation/domain/objects.ts';
import { codeOf } from '../../foundation/errors.ts';
import { PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE, replaceFile, syncDirectory } from '../../foundation/files.ts';
import { PrefixHash } from '../../foundation/prefix-hashes.ts';
import type { Draft } from './drafts.ts';
import { FileSink } from './file-sink.ts';
import { type FilesRoot, onDisk, writeError } from './files-root.ts';
import { fingerprintOf } from './fingerprint.ts';

/** An incomplete download that is not continued for this time is deleted, milliseconds. */
const PART_AGE_MS = 7 * 24 * 3_600_000;

const READ_FLAGS: number = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);

/** Bytes that are complete and on disk, but not stored as an object yet. */
export interface Incoming {
  readonly objectId: string;
  readonly size: number;
  readonly file: string;
  /** See `PrefixHash.list`. */
  readonly prefixes: Buffer;
}

export class BlobStore {
  readonly #root: FilesRoot;

  constructor(root: FilesRoot) {
    this.#root = root;
  }

  /**
   * The path of the bytes of an object.
   * @throws RangeError if the ID is not a SHA-256. A restored database may contain any text
   */
  #pathOf(objectId: string): string {
    if (!isSha256(objectId)) throw new RangeError('not an object ID');
    return join(this.#root.objects, objectId.slice(0, 2), objectId);
  }

  /**
   * Writes a source to a temporary file, with backpressure from the disk.
   * @param admit called before each chunk is written. If it throws, the file is removed
   * @param draft shows the bytes while they arrive
   * @throws SvcError `not_writable`, and the errors of `admit` and the source
   */
  async receive(
    source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    admit: (bytes: number) => void,
    draft?: Draft,
  ): Promise<Incoming> {
    const file = join(this.#root.incoming, randomUUID());
    const show = (bytes: number): void => draft?.grow(bytes, sink.hash, () => open(file, READ_FLAGS));
    const sink = new FileSink(await onDisk(open(file, 'wx', PRIVATE_FILE_MODE)), new PrefixHash(), show);
    try {
      for await (const chunk of source) {
        admit(chunk.length);
        await sink.append(chunk);
      }
      await sink.sync();
      await sink.close();
      return { objectId: sink.digest(), size: sink.length, file, prefixes: sink.hash.list() };
    } catch (error) {
      await sink.close();
      await this.discard({ file });
      throw error;
    }
  }

  /**
   * Renames a temporary file to its object ID and syncs the folder. Returns its fingerprint. Synchronous, so that the
   * same bytes cannot be removed before their row is stored.
   * @throws SvcError `not_writable`
   */
  commit({ objectId, file }: Incoming): string {
    const target = this.#pathOf(objectId);
    try {
      if (mkdirSync(dirname(target), { recursive: true, mode: PRIVATE_DIRECTORY_MODE }) !== undefined)
        syncDirectory(this.#root.objects);
      replaceFile(file, target);
      syncDirectory(dirname(target));
      return fingerprintOf(statSync(target, { bigint: true }));
    } catch (error) {
      throw writeError(error);
    }
  }

  async discard({ file }: Pick<Incoming, 'file'>): Promise<void> {
    await rm(file, { force: true }).catch(() => {});
  }

  /** Opens the bytes of an object. Null if they do not exist. */
  async open(objectId: string): Promise<FileHandle | null> {
    if (!isSha256(objectId)) return null;
    try {
      return await open(this.#pathOf(objectId), READ_FLAGS);
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP') return null;
      throw error;
    }
  }

  /** Removes the bytes of an object. Call it in the same turn as the deletion of the last row that names them. */
  remove(objectId: string): void {
    if (isSha256(objectId)) rmSync(this.#pathOf(objectId), { force: true });
  }

  /**
   * Removes temporary files after a crash. Stored bytes remain, because they may belong to another database.
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
