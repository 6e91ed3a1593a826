/**
 * Copies of the databases from before a release on trial. A release may upgrade the schema, and the previous release
 * cannot read the new schema. A rollback only restores databases with a changed schema, so that no other data is lost.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LOCK_FILE_NAME } from '../../foundation/data-dir/lock.ts';
import { DATABASE_FILE, STATE_NUMBER_FILE } from '../../foundation/data-dir/paths.ts';
import { PRIVATE_DIRECTORY_MODE, replaceFile, syncDirectory, syncFile } from '../../foundation/files.ts';

/** The schema version. Opening the database also applies its write-ahead log. */
function schemaOf(file: string): number {
  const database = new DatabaseSync(file);
  try {
    return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
  } finally {
    database.close();
  }
}

/** False for an empty or truncated file. */
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

  /** @param directory where the copies are stored */
  constructor(dataDir: string, directory: string) {
    this.#dataDir = dataDir;
    this.#directory = directory;
  }

  /** Copies every database, all or none. The daemon must not be running. */
  take(): void {
    this.remove();
    try {
      mkdirSync(this.#directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
      for (const name of readdirSync(this.#dataDir)) {
        if (!name.endsWith('.db') || name === LOCK_FILE_NAME) continue;
        schemaOf(join(this.#dataDir, name));
        copyFileSync(join(this.#dataDir, name), join(this.#directory, name));
        syncFile(join(this.#directory, name));
      }
      // Flush before the trial is recorded. A power failure must not leave a trial with empty copies.
      syncDirectory(this.#directory);
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** Restores the databases with a changed schema. The daemon must not be running. Can be repeated. */
  restore(): void {
    if (!existsSync(this.#directory)) return;
    for (const name of readdirSync(this.#directory)) {
      const [live, copy] = [join(this.#dataDir, name), join(this.#directory, name)];
      // An incomplete copy never replaces a database.
      if (!name.endsWith('.db') || !isWhole(copy)) continue;
      if (existsSync(live) && schemaOf(live) === schemaOf(copy)) continue;
      const temporary = `${copy}.restored`;
      copyFileSync(copy, temporary);
      syncFile(temporary);
      // The old release must not read the write-ahead log of the new one.
      for (const suffix of ['-wal', '-shm']) rmSync(live + suffix, { force: true });
      // The database is older than the state number on purpose.
      if (name === DATABASE_FILE) rmSync(join(this.#dataDir, STATE_NUMBER_FILE), { force: true });
      replaceFile(temporary, live);
    }
    syncDirectory(this.#dataDir);
  }

  /** Removes the copies. */
  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
