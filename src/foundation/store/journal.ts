/**
 * The journal of a database as a file. A commit that makes it grow has the file system write down the new size as well
 * before it is sure, which takes many times as long as writing over what is there. SQLite itself writes over its journal
 * once that has reached its full size; so it gets that from the beginning.
 */
import { close, fdatasync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** What a journal grows to before SQLite begins it anew: 1,000 pages of 4 KiB with a head of 24 bytes each, and some more. Bytes. */
export const JOURNAL_BYTES: number = 4160 * 1024;
/** Less free room on the disk counts as none: what was taken ahead is not used up, as emptying the journal needs more. Bytes. */
const MIN_FREE_BYTES: number = 64 * 1024;
const ZEROS_BYTES: number = 256 * 1024;
/** Within how many milliseconds the disk is asked to make sure what nobody waits for: one look for all of it. */
export const SYNC_SOON_MS = 50;

export class Journal {
  readonly #file: number;
  readonly #directory: string;
  #isSyncing = false;
  #isBehind = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  /** Who waits for the next look at the disk. */
  #waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];

  private constructor(file: number, directory: string) {
    this.#file = file;
    this.#directory = directory;
  }

  /**
   * Opens the journal of an open database and makes it as long as it ever gets; what stands behind its last frame
   * SQLite reads as nothing. Nobody else may write to the database meanwhile. Null where there is none.
   * @param reserves false leaves its length alone: it is opened only to be made sure
   */
  static open(databaseFile: string, reserves = true): Journal | null {
    let file: number;
    try {
      file = openSync(`${databaseFile}-wal`, 'r+');
    } catch {
      return null;
    }
    const journal = new Journal(file, dirname(databaseFile));
    if (reserves) {
      journal.#grow();
      // Nobody has to wait until the disk has it: until then commits take as long as they would without.
      journal.#sync();
    }
    return journal;
  }

  #grow(): void {
    try {
      const zeros = new Uint8Array(ZEROS_BYTES);
      for (let at = fstatSync(this.#file).size; at < JOURNAL_BYTES; )
        at += writeSync(this.#file, zeros, 0, Math.min(zeros.length, JOURNAL_BYTES - at), at);
    } catch {
      // A full disk: what there was of it helps as far as it goes.
    }
  }

  /** True where the disk has no room left, though the journal may have some. What cannot be told counts as room. */
  isDiskFull(): boolean {
    try {
      const { bsize, blocks, bfree } = statfsSync(this.#directory);
      return blocks > 0 && bfree * bsize < MIN_FREE_BYTES;
    } catch {
      return false;
    }
  }

  /** Makes sure what was committed without waiting for the disk, on another thread and together with what comes next. */
  syncSoon(): void {
    this.#timer ??= setTimeout(() => this.#sync(), SYNC_SOON_MS).unref();
  }

  #sync(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isBehind = true;
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    this.#isBehind = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    fdatasync(this.#file, (error) => {
      this.#isSyncing = false;
      for (const { resolve, reject } of waiting) {
        if (error === null) resolve();
        else reject(error);
      }
      if (this.#isClosed) this.#end();
      else if (this.#isBehind) this.#sync();
    });
  }

  /** Asks the disk at once; settles when the disk has it, and rejects where it refuses. Those who come together share a look. */
  sure(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ resolve, reject });
    this.#sync();
    return promise;
  }

  #end(): void {
    close(this.#file, () => {});
    for (const { reject } of this.#waiting) reject(new Error('the database was closed'));
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (!this.#isSyncing) this.#end();
  }
}
