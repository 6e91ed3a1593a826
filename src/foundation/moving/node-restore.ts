/**
 * Restores a node from an archive. Everything is written next to the current files and verified. Then one rename
 * commits the restore. If this process stops after that, the next restore or daemon finishes it. See docs/moving.md.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { isoTime } from '../clock.ts';
import { parseConfig } from '../config/file.ts';
import { setKeys } from '../config/toml-edit.ts';
import { finishRestore, READY, REPLACED, REPLACES_FILE, STAGING } from '../data-dir/finish-restore.ts';
import { acquireLock } from '../data-dir/lock.ts';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY } from '../data-dir/paths.ts';
import { EPOCH_BYTES } from '../domain/groups.ts';
import { SvcError } from '../errors.ts';
import {
  describeDiskError,
  makeDirectory,
  PRIVATE_DIRECTORY_MODE,
  PRIVATE_FILE_MODE,
  replaceFile,
  syncDirectory,
  writeFileAtomic,
} from '../files.ts';
import { keyFileName, NODE_KEY } from '../keys/key-store.ts';
import { MIGRATIONS } from '../store/schema.ts';
import { Store } from '../store/store.ts';
import type { ByteSource } from './byte-reader.ts';
import { type Manifest, readArchive } from './node-archive.ts';

/** Event numbers that are skipped, because events after the backup may have used them. */
const EVENTS_SKIPPED = 1_000_000_000;

export interface RestoreOptions {
  /** Absolute path. Created if it is missing. */
  readonly dataDir: string;
  /** Replaces an existing node and keeps it in a directory next to it. */
  readonly force: boolean;
  /** Unix milliseconds. */
  readonly now: number;
}

export interface Restored {
  readonly manifest: Manifest;
  /** Absolute path of the replaced node, or null. */
  readonly replaced: string | null;
}

/**
 * Restores a node.
 * @throws SvcError `already_running` if a daemon runs there; `wrong_state` if a node exists and `force` is not set;
 * `bad_file`, `wrong_password`, `store_corrupt`, `key_damaged`, `not_writable`
 */
export async function restoreNode(archive: ByteSource, options: RestoreOptions): Promise<Restored> {
  const { dataDir } = options;
  const isNew = !existsSync(dataDir);
  try {
    makeDirectory(dataDir, PRIVATE_DIRECTORY_MODE);
  } catch (error) {
    throw unwritable(dataDir, error);
  }
  const lock = acquireLock(dataDir);
  if (lock === null)
    throw new SvcError('already_running', {
      message: `svcd is running on ${dataDir}. Stop it first. Nothing was changed.`,
    });
  let done = false;
  try {
    finishRestore(dataDir);
    const restored = await restoreInto(archive, options);
    done = true;
    return restored;
  } catch (error) {
    if (error instanceof SvcError || !isOfTheSystem(error)) throw error;
    throw unwritable(dataDir, error);
  } finally {
    lock.release();
    if (isNew && !done && !existsSync(join(dataDir, READY))) rmSync(dataDir, { recursive: true, force: true });
  }
}

function isOfTheSystem(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

function unwritable(dataDir: string, error: unknown): SvcError {
  return new SvcError('not_writable', {
    message: `The node cannot be written to ${dataDir}${describeDiskError(error)} Nothing was changed.`,
    cause: error,
  });
}

/** Runs with the lock, after any earlier restore was finished. */
async function restoreInto(archive: ByteSource, { dataDir, force, now }: RestoreOptions): Promise<Restored> {
  const old = REPLACED.filter((name) => existsSync(join(dataDir, name)));
  if (old.length > 0 && !force)
    throw new SvcError('wrong_state', {
      message: `${dataDir} already contains a node. Use --force to replace it; the old node is kept in another directory.`,
    });
  refuseMounted(dataDir, old);
  const staging = join(dataDir, STAGING);
  mkdirSync(join(staging, KEYS_DIRECTORY), { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  try {
    const manifest = await readArchive(archive, ({ name }) => stagedFile(join(staging, name)));
    verify(staging, manifest);
    const replaced = asideName(now);
    writeFileAtomic(join(staging, REPLACES_FILE), replaced);
    for (const part of [join(staging, KEYS_DIRECTORY), staging]) syncDirectory(part);
    // After this line, the archive is committed.
    replaceFile(staging, join(dataDir, READY));
    syncDirectory(dataDir);
    finishRestore(dataDir);
    return { manifest, replaced: old.length > 0 ? join(dataDir, replaced) : null };
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** An unused name. */
function asideName(now: number): string {
  const time = isoTime(now).replaceAll(/[-:]|\.\d+/g, '');
  return `replaced-${time}-${randomBytes(2).toString('hex')}`;
}

/** Files on another disk could not be moved after the commit. */
function refuseMounted(dataDir: string, names: readonly string[]): void {
  const { dev } = statSync(dataDir);
  const other = names.find((name) => lstatSync(join(dataDir, name)).dev !== dev);
  if (other === undefined) return;
  throw new SvcError('not_writable', {
    message: `${join(dataDir, other)} is on another disk than ${dataDir}. Move it there first. Nothing was changed.`,
  });
}

/** Writes a file of the archive, whose name is already checked. */
function stagedFile(path: string) {
  const file = openSync(path, 'wx', PRIVATE_FILE_MODE);
  return {
    write: (piece: Uint8Array): void => {
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
    },
    close: (): void => {
      fsyncSync(file);
      closeSync(file);
    },
  };
}

/** The objects of a database, without the statistics of SQLite. */
const SCHEMA =
  "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name";

/** After ALTER TABLE, versions of SQLite differ in blanks and quotes. */
function schemaOf(database: DatabaseSync): string[] {
  const rows = database.prepare(SCHEMA).all();
  return rows.map((row) =>
    Object.values(row)
      .join(' ')
      .replaceAll(/["\s]+/g, ''),
  );
}

/**
 * Rejects a database with a foreign schema: a view, trigger or constraint in it would run with later statements.
 * No part of the schema runs here.
 */
function checkSchema(file: string): void {
  const [given, own] = [new DatabaseSync(file, { readOnly: true }), new DatabaseSync(':memory:')];
  try {
    const version = Number(given.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    // A newer version is rejected when the database is opened.
    if (version > MIGRATIONS.length) return;
    for (const step of MIGRATIONS.slice(0, version)) own.exec(step);
    if (!isDeepStrictEqual(schemaOf(given), schemaOf(own)))
      throw new SvcError('bad_file', {
        message: 'The database of the backup was not written by svcd. Nothing was changed. Use another backup.',
      });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError('bad_file', {
      message: 'The database of the backup is damaged. Nothing was changed. Use another backup.',
      cause: error,
    });
  } finally {
    given.close();
    own.close();
  }
}

/** Prepares the staged files, so that a daemon can start from them. */
function verify(staging: string, { files }: Manifest): void {
  const names = new Set(files.map(({ name }) => name));
  checkSchema(join(staging, DATABASE_FILE));
  const store = Store.open(join(staging, DATABASE_FILE), MIGRATIONS);
  try {
    const check = store.one('PRAGMA integrity_check');
    if (Object.values(check ?? {})[0] !== 'ok')
      throw new SvcError('bad_file', {
        message: 'The database of the backup is damaged. Nothing was changed. Use another backup.',
      });
    const missing = store
      .all('SELECT key_name FROM agents')
      .filter((row) => !names.has(`${KEYS_DIRECTORY}/${keyFileName(String(row['key_name']))}`));
    if (missing.length > 0 || !names.has(`${KEYS_DIRECTORY}/${keyFileName(NODE_KEY)}`))
      throw new SvcError('bad_file', {
        message: 'Keys are missing from the backup. Nothing was changed. Use another backup.',
      });
    resetAfterRestore(store);
  } finally {
    store.close();
  }
  const database = openSync(join(staging, DATABASE_FILE), 'r+');
  fsyncSync(database);
  closeSync(database);
  if (names.has(CONFIG_FILE)) rewriteConfig(join(staging, CONFIG_FILE));
}

/** The keys are in the data directory after a restore. */
function rewriteConfig(file: string): void {
  const text = readFileSync(file, 'utf8');
  const { key_dir: keyDir = '' } = parseConfig(text, CONFIG_FILE);
  if (keyDir === '') return;
  writeFileAtomic(file, setKeys(text, new Map([['key_dir', '']])));
}

/**
 * Turns public addresses off and claims none of their names: only the owner of this machine can expose an agent on it.
 * Renames state that peers would otherwise continue after the time of the backup: members read the copies of groups from the
 * start, and no event number is used twice.
 */
export function resetAfterRestore(store: Store): void {
  store.transaction(() => {
    for (const { lid } of store.all('SELECT lid FROM group_logs'))
      store.run('UPDATE group_logs SET epoch = ? WHERE lid = ?', new Uint8Array(randomBytes(EPOCH_BYTES)), Number(lid));
    store.run('UPDATE exposures SET is_on = 0');
    store.run('DELETE FROM public_names');
    store.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'events'", EVENTS_SKIPPED);
  });
}
