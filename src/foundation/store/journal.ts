/**
 * The journal (WAL) of a database, as a file. A commit that enlarges it also flushes its new size, which takes many
 * times as long as an overwrite. SQLite overwrites a journal of full size, so this class allocates the full size in
 * advance.
 */
import { closeSync, fdatasync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Full size of a journal, at which SQLite restarts it: 1,000 pages of 4 KiB with a header of 24 bytes each, and a
 * reserve. Bytes.
 */
export const JOURNAL_BYTES: number = 4160 * 1024;
/**
 * Free bytes below which the disk counts as full. The allocated journal is not used up then, because SQLite needs more
 * space to copy it to the database.
 */
const MIN_FREE_BYTES: number = 64 * 1024;
const ZEROS_BYTES: number = 256 * 1024;
/** Milliseconds within which `Store.commit(work, 'soon')` begins its flush, which covers all commits until then. */
export const SYNC_SOON_MS = 50;

interface JournalOptions {
  readonly reserves?: boolean;
  readonly onError?: () => void;
}

export class Journal {
  readonly #file: number;
  readonly #directory: string;
  readonly #onError: () => void;
  #isSyncing = false;
  #needsSync = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  /** Callers that wait for the next flush. */
  #waiters: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];

  private constructor(file: number, directory: string, onError: () => void) {
    this.#file = file;
    this.#onError = onError;
    this.#directory = directory;
  }

  /**
   * Opens the journal of an open database and extends it to its full size. SQLite ignores the bytes after the last
   * frame. No other process may write to the database. Null if there is no journal.
   * @param reserves false keeps the size: the journal is opened only for flushes
   * @param onError called after each failed flush
   */
  static open(databaseFile: string, { reserves = true, onError = () => {} }: JournalOptions = {}): Journal | null {
    let file: number;
    try {
      file = openSync(`${databaseFile}-wal`, 'r+');
    } catch {
      return null;
    }
    const journal = new Journal(file, dirname(databaseFile), onError);
    if (reserves) {
      journal.#grow();
      // In the background: until it completes, commits take as long as without it.
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
      // The disk is full. A partial allocation still helps.
    }
  }

  /** True if the disk is full, even if the journal has space. False if the state is unknown. */
  isDiskFull(): boolean {
    try {
      const { bsize, blocks, bfree } = statfsSync(this.#directory);
      return blocks > 0 && bfree * bsize < MIN_FREE_BYTES;
    } catch {
      return false;
    }
  }

  /** Flushes earlier commits on another thread, together with commits of the next milliseconds. */
  flushSoon(): void {
    this.#timer ??= setTimeout(() => this.#sync(), SYNC_SOON_MS).unref();
  }

  #sync(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#needsSync = true;
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    this.#needsSync = false;
    const waiters = this.#waiters;
    this.#waiters = [];
    fdatasync(this.#file, (error) => {
      this.#isSyncing = false;
      if (error !== null) this.#onError();
      for (const { resolve, reject } of waiters) {
        if (error === null) resolve();
        else reject(error);
      }
      if (this.#isClosed) this.#closeFile();
      else if (this.#needsSync) this.#sync();
    });
  }

  /** Flushes now. Resolves when the data is on disk, and rejects on errors. Concurrent callers share a flush. */
  flush(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiters.push({ resolve, reject });
    this.#sync();
    return promise;
  }

  #closeFile(): void {
    // Windows deletes no journal that is open.
    try {
      closeSync(this.#file);
    } catch {
      // A failed flush was reported already.
    }
    for (const { reject } of this.#waiters) reject(new Error('the database was closed'));
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (!this.#isSyncing) this.#closeFile();
  }
}
