/**
 * Writes files of a private directory in the background. The caller must be able to recreate a file until it is
 * durable. Each file is replaced atomically, and files written together share one sync of the directory.
 */
import { renameSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { detach } from '../detached.ts';
import { PRIVATE_FILE_MODE } from '../file-modes.ts';
import type { Log } from '../log.ts';

/** Maximum number of concurrent writes, which use descriptors and threads of the pool. */
const MAX_CONCURRENT_WRITES = 32;
/**
 * Delay before writing, in milliseconds. The caller usually has other work to do first, and files that arrive meanwhile
 * share the directory sync.
 */
const WRITE_AFTER_MS = 50;

interface DeferredFilesDependencies {
  readonly log: Log;
  /** Writes a file durably before it returns. @throws SvcError `not_writable` */
  readonly write: (file: string, text: string) => void;
}

export class DeferredFiles {
  readonly #path: string;
  readonly #deps: DeferredFilesDependencies;
  /** Names and contents of files that are not durable yet. */
  readonly #pending = new Map<string, string>();
  #isWriting = false;

  /** @param path of the directory */
  constructor(path: string, dependencies: DeferredFilesDependencies) {
    this.#path = path;
    this.#deps = dependencies;
  }

  /** The content of a file that is not durable yet; undefined for others. */
  get(file: string): string | undefined {
    return this.#pending.get(file);
  }

  /** Schedules a write. */
  put(file: string, text: string): void {
    this.#pending.set(file, text);
    if (this.#isWriting) return;
    this.#isWriting = true;
    setTimeout(() => detach(this.#writeAll()), WRITE_AFTER_MS);
  }

  /** Cancels a scheduled write, because the file was written otherwise or will be deleted. */
  discard(file: string): void {
    this.#pending.delete(file);
  }

  /**
   * Writes all scheduled files durably before it returns. @throws SvcError `not_writable`; the remaining files stay
   * scheduled
   */
  flush(): void {
    for (const [file, text] of this.#pending) {
      this.#deps.write(file, text);
      this.#pending.delete(file);
    }
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#pending.size > 0) {
        const batch = this.#pending.entries().take(MAX_CONCURRENT_WRITES).toArray();
        await Promise.all(batch.map(([file, text]) => this.#write(file, text)));
        await this.#syncNames();
        for (const [file, text] of batch) if (this.#pending.get(file) === text) this.#pending.delete(file);
      }
    } catch (error) {
      // The files stay scheduled for the next `put` or `flush`.
      this.#deps.log.warn({ error }, 'keys could not be written, svcd will retry');
    } finally {
      this.#isWriting = false;
    }
  }

  async #write(file: string, text: string): Promise<void> {
    const temporary = join(this.#path, `late-${file}.tmp`);
    await rm(temporary, { force: true });
    // "wx" fails if a link was created here meanwhile, so the write cannot follow it.
    const handle = await open(temporary, 'wx', PRIVATE_FILE_MODE);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // The file may have been written otherwise or deleted meanwhile. The check and the rename are synchronous, so
    // nothing can happen between them.
    if (this.#pending.get(file) === text) renameSync(temporary, join(this.#path, file));
    else await rm(temporary, { force: true });
  }

  async #syncNames(): Promise<void> {
    if (process.platform === 'win32') return;
    const directory = await open(this.#path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}
