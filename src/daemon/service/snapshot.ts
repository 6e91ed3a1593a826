/**
 * The databases as they were before a release ran on probation. A release may bring a newer schema,
 * which the one before does not read: going back, only a database whose schema has changed is put
 * back, so that nothing else is lost.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { syncDirectory, syncFile } from '../../foundation/atomic-file.ts';
import { LOCK_FILE_NAME } from '../../foundation/data-dir/lock.ts';
import { DATABASE_FILE, STATE_NUMBER_FILE } from '../../foundation/data-dir/names.ts';
import { PRIVATE_DIRECTORY_MODE } from '../../foundation/file-modes.ts';

/** The schema version; opening also brings in what a write-ahead log still holds. */
function schemaOf(file: string): number {
  const database = new DatabaseSync(file);
  try {
    return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
  } finally {
    database.close();
  }
}

/** False for a file that is cut off, or empty. */
function isWhole(file: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const hasTables = database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
    return hasTables && Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0] === 'ok';
  } catch {
    return false;
  } finally {
    database.close();
  }
}

export class DatabaseSnapshot {
  readonly #dataDir: string;
  readonly #directory: string;

  /** @param directory where the copies lie while there are any */
  constructor(dataDir: string, directory: string) {
    this.#dataDir = dataDir;
    this.#directory = directory;
  }

  /** Copies every database, all or none; the daemon does not run. */
  take(): void {
    this.drop();
    try {
      mkdirSync(this.#directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
      for (const name of readdirSync(this.#dataDir)) {
        if (!name.endsWith('.db') || name === LOCK_FILE_NAME) continue;
        schemaOf(join(this.#dataDir, name));
        copyFileSync(join(this.#dataDir, name), join(this.#directory, name));
        syncFile(join(this.#directory, name));
      }
      // Before the trial is noted: a power cut must not leave a trial with copies that are empty.
      syncDirectory(this.#directory);
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Puts back the databases whose schema is another one now; the daemon does not run. Can be repeated. */
  restore(): void {
    if (!existsSync(this.#directory)) return;
    for (const name of readdirSync(this.#directory)) {
      const [live, copy] = [join(this.#dataDir, name), join(this.#directory, name)];
      // A copy that is not whole never takes the place of a database.
      if (!name.endsWith('.db') || !isWhole(copy)) continue;
      if (existsSync(live) && schemaOf(live) === schemaOf(copy)) continue;
      const temporary = `${copy}.restored`;
      copyFileSync(copy, temporary);
      syncFile(temporary);
      // What the newer one left beside it is not for the older one.
      for (const suffix of ['-wal', '-shm']) rmSync(live + suffix, { force: true });
      // It is older on purpose.
      if (name === DATABASE_FILE) rmSync(join(this.#dataDir, STATE_NUMBER_FILE), { force: true });
      renameSync(temporary, live);
    }
    syncDirectory(this.#dataDir);
  }

  /** Removes the copies. */
  drop(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
