/**
 * Files of a private directory that are written without anybody waiting for the disk: whoever keeps them can make them
 * again until they are sure. Each is there as a whole or as it was before, and many that come together share the last
 * step, in which the disk writes down their names.
 */
import { renameSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { detach } from '../detached.ts';
import { PRIVATE_FILE_MODE } from '../file-modes.ts';
import type { Log } from '../log.ts';

/** Files that are made sure at a time: descriptors, and work for other threads. */
const MAX_CONCURRENT_WRITES = 32;
/** After how many milliseconds they are: who puts one has something else to do first, and what comes meanwhile shares its last step. */
const WRITE_AFTER_MS = 50;

interface DeferredFilesDependencies {
  readonly log: Log;
  /** Writes a file at once, durably. @throws SvcError `not_writable` */
  readonly write: (file: string, text: string) => void;
}

export class DeferredFiles {
  readonly #path: string;
  readonly #deps: DeferredFilesDependencies;
  /** Names and contents of what is not sure yet. */
  readonly #waiting = new Map<string, string>();
  #isWriting = false;

  /** @param path of the directory */
  constructor(path: string, dependencies: DeferredFilesDependencies) {
    this.#path = path;
    this.#deps = dependencies;
  }

  /** The content of a file that is not sure yet; undefined for others. */
  get(file: string): string | undefined {
    return this.#waiting.get(file);
  }

  /** Writes a file soon. */
  put(file: string, text: string): void {
    this.#waiting.set(file, text);
    if (this.#isWriting) return;
    this.#isWriting = true;
    setTimeout(() => detach(this.#writeAll()), WRITE_AFTER_MS);
  }

  /** Leaves a file alone: it was written otherwise, or is to be deleted. */
  discard(file: string): void {
    this.#waiting.delete(file);
  }

  /** Writes at once what waits, durably. @throws SvcError `not_writable`; the rest waits on */
  flush(): void {
    for (const [file, text] of this.#waiting) {
      this.#deps.write(file, text);
      this.#waiting.delete(file);
    }
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#waiting.size > 0) {
        const batch = this.#waiting.entries().take(MAX_CONCURRENT_WRITES).toArray();
        await Promise.all(batch.map(([file, text]) => this.#write(file, text)));
        await this.#syncNames();
        for (const [file, text] of batch) if (this.#waiting.get(file) === text) this.#waiting.delete(file);
      }
    } catch (error) {
      // They wait on: for the next that comes, and for whoever needs them to be sure.
      this.#deps.log.warn({ error }, 'keys could not be written yet');
    } finally {
      this.#isWriting = false;
    }
  }

  async #write(file: string, text: string): Promise<void> {
    const temporary = join(this.#path, `late-${file}.tmp`);
    await rm(temporary, { force: true });
    // "wx": a link that somebody put there in between is not written through.
    const handle = await open(temporary, 'wx', PRIVATE_FILE_MODE);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Meanwhile it may have been written otherwise, or deleted; from this look on nobody can come in between.
    if (this.#waiting.get(file) === text) renameSync(temporary, join(this.#path, file));
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
