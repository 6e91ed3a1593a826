/** Writes a file while more chunks arrive, and hashes it. */
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { moveWithoutReplacing, PRIVATE_FILE_MODE, replaceFile, syncDirectory } from '../../foundation/files.ts';
import { PrefixHash, type PrefixHashes } from '../../foundation/prefix-hashes.ts';
import { onDisk, writeError } from './files-root.ts';
import { hashInto } from './fingerprint.ts';

/** Chunks are collected up to this size and written together, because single writes are slow. */
const BATCH_BYTES = 1024 * 1024;
/** A sync starts after this many bytes, so that the final sync is short. */
const SYNC_BYTES = 32 * 1024 * 1024;

/** Frees the memory of a chunk. */
type ReleaseChunk = (chunk: Buffer) => void;

interface Piece {
  readonly chunk: Uint8Array;
  readonly release: ReleaseChunk | undefined;
}

export class FileSink {
  readonly #handle: FileHandle;
  readonly #onWritten: ((bytes: number) => void) | undefined;
  #hash: PrefixHash;
  /** Accepted chunks that are not being written yet. */
  #batch: Piece[] = [];
  #batched = 0;
  #writing: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();
  #unsynced = 0;
  #busy = false;

  /**
   * Continues a file after the bytes that `hash` includes.
   * @param onWritten called with the number of bytes that can be read
   */
  constructor(handle: FileHandle, hash = new PrefixHash(), onWritten?: (bytes: number) => void) {
    this.#handle = handle;
    this.#hash = hash;
    this.#onWritten = onWritten;
  }

  /** Accepted bytes. */
  get length(): number {
    return this.#hash.length;
  }

  /** The hash of the accepted bytes. */
  get hash(): PrefixHash {
    return this.#hash;
  }

  /** SHA-256 of the accepted bytes, lower-case hex. */
  digest(): string {
    return this.#hash.digest();
  }

  /**
   * Accepts a chunk, which must not change until it is released. Resolves at the speed of the disk.
   * @param release called when the chunk is written
   * @throws SvcError `not_writable`
   */
  async append(chunk: Uint8Array, release?: ReleaseChunk): Promise<void> {
    this.#hash.update(chunk);
    this.#batch.push({ chunk, release });
    this.#batched += chunk.length;
    if (this.#batched >= BATCH_BYTES) await this.#flushBatch();
  }

  /**
   * Waits until all accepted bytes are written.
   * @throws SvcError `not_writable`
   */
  async flush(): Promise<void> {
    await this.#flushBatch();
    await onDisk(this.#writing);
  }

  /**
   * Waits until all accepted bytes are synced to disk.
   * @throws SvcError `not_writable`
   */
  async sync(): Promise<void> {
    await this.flush();
    await onDisk(this.#syncing);
    await onDisk(this.#handle.sync());
  }

  /** Discards the content of the file and all pending writes. */
  async reset(): Promise<void> {
    this.#batch = [];
    this.#batched = 0;
    await this.#writing.catch(() => {});
    await onDisk(this.#handle.truncate(0));
    this.#hash = new PrefixHash();
    this.#writing = Promise.resolve();
  }

  /**
   * Compares the complete ranges with the hashes of a sender. From a wrong range on, the bytes are removed.
   * @param size of the whole file, bytes
   * @returns whether they are right
   * @throws SvcError `not_writable`, and the errors of the sender
   */
  async verify(hashes: PrefixHashes, size: number): Promise<boolean> {
    const right = await this.#hash.check(hashes, size);
    if (right === null) return true;
    await this.flush();
    await onDisk(this.#handle.truncate(right));
    const cut = this.#hash.cut(right);
    this.#hash = cut ?? new PrefixHash();
    if (cut === null) await onDisk(hashInto(this.#hash, this.#handle));
    return false;
  }

  /** Closes the file. Bytes that were not flushed are lost. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#syncing]);
    await this.#handle.close();
  }

  /** Starts to write the batch after the previous batch is written, so at most two are in memory. */
  async #flushBatch(): Promise<void> {
    await onDisk(this.#writing);
    if (this.#batched === 0) return;
    this.#writing = this.#write(this.#batch, this.#batched, this.length - this.#batched);
    // The next caller receives the error.
    this.#writing.catch(() => {});
    this.#unsynced += this.#batched;
    this.#batch = [];
    this.#batched = 0;
    if (this.#unsynced < SYNC_BYTES || this.#busy) return;
    // The sync runs while more chunks are written.
    this.#unsynced = 0;
    this.#busy = true;
    this.#syncing = this.#handle.datasync().finally(() => {
      this.#busy = false;
    });
    // The final sync receives the error.
    this.#syncing.catch(() => {});
  }

  async #write(batch: readonly Piece[], size: number, position: number): Promise<void> {
    const chunks = batch.map(({ chunk }) => chunk);
    const { bytesWritten } = await this.#handle.writev(chunks, position);
    // Rare: the system wrote only a part.
    let rest = Buffer.concat(bytesWritten < size ? chunks : []).subarray(bytesWritten);
    while (rest.length > 0) {
      const written = await this.#handle.write(rest, 0, rest.length, position + size - rest.length);
      rest = rest.subarray(written.bytesWritten);
    }
    for (const { chunk, release } of batch) if (chunk instanceof Buffer) release?.(chunk);
    this.#onWritten?.(position + size);
  }
}

// A download in progress. It has a temporary name and is renamed when it is complete.

export class PartFile extends FileSink {
  readonly #file: string;

  private constructor(file: string, handle: FileHandle, hash: PrefixHash) {
    super(handle, hash);
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
      const hash = new PrefixHash();
      await hashInto(hash, handle);
      return new PartFile(file, handle, hash);
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
      if (force) replaceFile(this.#file, target);
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
