/** Opens the bytes of objects, and checks that they are still the hashed bytes. */
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../../foundation/clock.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { ObjectRepository, ObjectRow } from '../../foundation/store/objects.ts';
import type { BlobStore } from './blob-store.ts';
import type { FilesRoot } from './files-root.ts';
import { fingerprintOf, hashFile, isRacy } from './fingerprint.ts';
import type { OpenedObject } from './types.ts';

/** Cached results for changed files, so that each change is hashed once and not for every request. */
const MAX_KNOWN_CHANGES = 1_024;

/** An open file of an object. */
export interface OpenedFile extends OpenedObject {
  readonly handle: FileHandle;
}

function gone(row: ObjectRow): SvcError {
  return new SvcError('gone', {
    message: 'The file of this object was changed or removed.',
    details: { object_id: row.objectId },
  });
}

export class RegisteredFiles {
  readonly #root: FilesRoot;
  readonly #blobs: BlobStore;
  readonly #repository: ObjectRepository;
  readonly #clock: Clock;
  /** Object and fingerprint of files with different bytes. */
  readonly #changed = new LruCache<string, true>({ maxEntries: MAX_KNOWN_CHANGES });
  readonly #checks = new SingleFlight<boolean>();

  constructor(root: FilesRoot, blobs: BlobStore, repository: ObjectRepository, clock: Clock) {
    this.#root = root;
    this.#blobs = blobs;
    this.#repository = repository;
    this.#clock = clock;
  }

  /**
   * Opens the file of an object.
   * @throws SvcError `gone` if it was removed or its bytes have changed
   */
  async open(row: ObjectRow): Promise<OpenedFile> {
    const handle = await this.#openFile(row);
    try {
      const stats = await handle.stat({ bigint: true });
      const fingerprint = fingerprintOf(stats);
      const trusted = fingerprint === row.fingerprint && (row.path === null || !isRacy(stats, row.hashedAt));
      if (!trusted && (Number(stats.size) !== row.size || !(await this.#check(row, handle, fingerprint))))
        throw gone(row);
      const isIntact = async (): Promise<boolean> => fingerprintOf(await handle.stat({ bigint: true })) === fingerprint;
      return { tag: row.objectId, name: row.name, size: row.size, handle, isIntact };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async #openFile(row: ObjectRow): Promise<FileHandle> {
    if (row.path === null) {
      const handle = await this.#blobs.open(row.objectId);
      if (handle === null) throw gone(row);
      return handle;
    }
    try {
      return (await this.#root.open(row.path)).handle;
    } catch (error) {
      // The registered file was removed, or replaced by a folder or a link to the outside.
      if (error instanceof SvcError) throw gone(row);
      throw error;
    }
  }

  /** Hashes a file with a new fingerprint, once for all concurrent callers. Returns true if its bytes are the same. */
  async #check(row: ObjectRow, handle: FileHandle, fingerprint: string): Promise<boolean> {
    const key = `${row.objectId} ${row.path ?? ''} ${fingerprint}`;
    if (this.#changed.get(key) === true) return false;
    return await this.#checks.run(key, () => this.#hashAgain(row, handle, key));
  }

  async #hashAgain(row: ObjectRow, handle: FileHandle, key: string): Promise<boolean> {
    const startedAt = this.#clock.now();
    const hashed = await hashFile(handle);
    if (hashed?.objectId === row.objectId) {
      this.#repository.setFingerprint(row, hashed.fingerprint, startedAt);
      return true;
    }
    if (hashed !== null) this.#changed.set(key, true);
    return false;
  }
}
