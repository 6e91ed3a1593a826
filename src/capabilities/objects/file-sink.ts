/** Writes a file piece by piece while the next pieces come, and hashes what it writes. */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { onDisk } from './file-errors.ts';

/** Pieces are written together once they are this many bytes: a write each would cost more than its bytes. */
const BATCH_BYTES = 1024 * 1024;
/** The disk is told to begin after so many bytes, so that it is not all left for the end. */
const SYNC_BYTES = 32 * 1024 * 1024;

/** Frees the memory of a piece that is not needed any more. */
export type ReleaseChunk = (chunk: Buffer) => void;

interface Piece {
  readonly chunk: Uint8Array;
  readonly release: ReleaseChunk | undefined;
}

export class FileSink {
  readonly #handle: FileHandle;
  #hash: Hash;
  #length: number;
  /** Taken, but not yet on its way to the disk. */
  #batch: Piece[] = [];
  #batched = 0;
  #writing: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();
  #unsynced = 0;
  #busy = false;

  /** Goes on behind the first `length` bytes of a file, which `hash` has seen. */
  constructor(handle: FileHandle, hash: Hash = createHash('sha256'), length = 0) {
    this.#handle = handle;
    this.#hash = hash;
    this.#length = length;
  }

  /** Bytes that were taken. */
  get length(): number {
    return this.#length;
  }

  /** SHA-256 of what was taken, lower-case hex. */
  digest(): string {
    return this.#hash.copy().digest('hex');
  }

  /**
   * Takes a piece, which must not change until it is released. Settles at the pace of the disk.
   * @param release told when the piece is written
   * @throws SvcError `not_writable`
   */
  async append(chunk: Uint8Array, release?: ReleaseChunk): Promise<void> {
    this.#hash.update(chunk);
    this.#length += chunk.length;
    this.#batch.push({ chunk, release });
    this.#batched += chunk.length;
    if (this.#batched >= BATCH_BYTES) await this.#turnOver();
  }

  /**
   * Waits until all that was taken is written.
   * @throws SvcError `not_writable`
   */
  async flush(): Promise<void> {
    await this.#turnOver();
    await onDisk(this.#writing);
  }

  /**
   * Waits until all that was taken is on the disk.
   * @throws SvcError `not_writable`
   */
  async sync(): Promise<void> {
    await this.flush();
    await onDisk(this.#syncing);
    await onDisk(this.#handle.sync());
  }

  /** Throws away what is in the file and what is on its way there. */
  async reset(): Promise<void> {
    this.#batch = [];
    this.#batched = 0;
    await this.#writing.catch(() => {});
    await onDisk(this.#handle.truncate(0));
    this.#hash = createHash('sha256');
    this.#length = 0;
    this.#writing = Promise.resolve();
  }

  /** Closes the file; what was not flushed is lost. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#syncing]);
    await this.#handle.close();
  }

  /** Sends the batch on its way once the one before has arrived: at most two are in memory. */
  async #turnOver(): Promise<void> {
    await onDisk(this.#writing);
    if (this.#batched === 0) return;
    this.#writing = this.#write(this.#batch, this.#batched, this.#length - this.#batched);
    // Whoever comes next hears of its failure.
    this.#writing.catch(() => {});
    this.#unsynced += this.#batched;
    this.#batch = [];
    this.#batched = 0;
    if (this.#unsynced < SYNC_BYTES || this.#busy) return;
    // The disk begins; what comes in goes on meanwhile.
    this.#unsynced = 0;
    this.#busy = true;
    this.#syncing = this.#handle.datasync().finally(() => {
      this.#busy = false;
    });
    // The end hears of its failure.
    this.#syncing.catch(() => {});
  }

  async #write(batch: readonly Piece[], size: number, position: number): Promise<void> {
    const chunks = batch.map(({ chunk }) => chunk);
    const { bytesWritten } = await this.#handle.writev(chunks, position);
    // Seldom: a disk that takes less than it is given.
    let rest = Buffer.concat(bytesWritten < size ? chunks : []).subarray(bytesWritten);
    while (rest.length > 0) {
      const written = await this.#handle.write(rest, 0, rest.length, position + size - rest.length);
      rest = rest.subarray(written.bytesWritten);
    }
    for (const { chunk, release } of batch) if (chunk instanceof Buffer) release?.(chunk);
  }
}
