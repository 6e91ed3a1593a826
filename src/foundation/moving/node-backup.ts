/**
 * Backs up a node from its data directory, with or without a running daemon: the database in one consistent read, then
 * the keys and the configuration. This must not run in the process of the daemon, and does not touch the lock: see
 * data-dir/lock.ts.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readConfigFile } from '../config/file.ts';
import { backupDirectory, removeStaleBackups } from '../data-dir/finish-restore.ts';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY } from '../data-dir/paths.ts';
import { codeOf, SvcError } from '../errors.ts';
import { describeDiskError, describeOpenError, PRIVATE_DIRECTORY_MODE } from '../files.ts';
import { isKeyFile, keyFileName, NODE_KEY } from '../keys/key-store.ts';
import type { FileSource } from './node-archive.ts';

/** Longest wait for a write of the daemon, milliseconds. */
const BUSY_TIMEOUT_MS = 10_000;
/** Attempts to find keys of agents in the snapshot, because a key may be written at this moment. */
const KEY_ATTEMPTS = 3;
export interface Snapshot {
  readonly files: readonly FileSource[];
  readonly agents: number;
  /** Deletes the temporary files. */
  dispose(): void;
}

export interface BackupOptions {
  /** Absolute path. */
  readonly dataDir: string;
  /** Folder of the keys. Default: the value in config.toml. */
  readonly keyDir?: string | undefined;
  readonly pid: number;
}

/**
 * Takes a snapshot of a data directory.
 * @throws SvcError `not_found` if there is no node; `key_damaged` if keys are missing; `store_corrupt`,
 * `config_invalid`, `not_writable`
 */
export function takeSnapshot({ dataDir, keyDir, pid }: BackupOptions): Snapshot {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database))
    throw new SvcError('not_found', {
      message: `${dataDir} contains no node: ${DATABASE_FILE} is missing. Check the path.`,
    });
  const config = join(dataDir, CONFIG_FILE);
  const configured = readConfigFile(config).values.key_dir ?? '';
  const keys = keyDir ?? (configured === '' ? join(dataDir, KEYS_DIRECTORY) : configured);
  const directory = backupDirectory(dataDir, pid);
  const dispose = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    removeStaleBackups(dataDir);
    mkdirSync(directory, { mode: PRIVATE_DIRECTORY_MODE });
    const { copy, keyFiles, agents } = consistent(database, directory, keys);
    const small: FileSource[] = [...keyFiles].map(([name, content]) => ({
      name: `${KEYS_DIRECTORY}/${name}`,
      content,
    }));
    if (existsSync(config)) small.push({ name: CONFIG_FILE, content: readFileSync(config) });
    return { files: [...small, { name: DATABASE_FILE, content: { path: copy } }], agents, dispose };
  } catch (error) {
    dispose();
    if (error instanceof SvcError) throw error;
    throw new SvcError('not_writable', {
      message: `Backing up ${dataDir} failed${troubleOf(error, database)}`,
      cause: error,
    });
  }
}

/** SQLite's code for a full disk or database. */
const SQLITE_FULL = 13;

/** The reason for a failed copy, as the end of a sentence. */
function troubleOf(error: unknown, database: string): string {
  if (error instanceof Error && 'syscall' in error) {
    const path = 'path' in error ? `: ${String(error.path)}` : '';
    return `${path}${describeDiskError(error)}`;
  }
  if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL)
    return ': the disk is full, free some space.';
  const reason = error instanceof Error ? ` (${error.message}).` : '.';
  return describeOpenError(database) ?? reason;
}

/** A copy of the database, and all keys that it names. */
function consistent(database: string, directory: string, keyDir: string) {
  for (let attempt = 1; ; attempt++) {
    const before = readKeys(keyDir);
    const copy = join(directory, `${attempt}.db`);
    const { agents, names } = copyDatabase(database, copy);
    // A key is written before its row, and deleted after it.
    const keyFiles = new Map([...before, ...readKeys(keyDir)]);
    const missing = names.filter((name) => !keyFiles.has(keyFileName(name)));
    if (missing.length === 0) return { copy, keyFiles, agents };
    if (attempt === KEY_ATTEMPTS)
      throw new SvcError('key_damaged', {
        message: `${missing.length} keys of agents are missing in ${keyDir}. If the keys are in another folder, give it with --key-dir.`,
      });
  }
}

function readKeys(directory: string): Map<string, Uint8Array> {
  const keys = new Map<string, Uint8Array>();
  if (!existsSync(directory)) return keys;
  for (const name of readdirSync(directory)) {
    // Other files of the user next to the keys are ignored.
    if (!isKeyFile(name)) continue;
    try {
      keys.set(name, readFileSync(join(directory, name)));
    } catch (error) {
      // Deleted meanwhile.
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
  return keys;
}

function copyDatabase(database: string, copy: string): { agents: number; names: string[] } {
  const db = new DatabaseSync(database, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    db.prepare('VACUUM INTO ?').run(copy);
  } finally {
    db.close();
  }
  const snapshot = new DatabaseSync(copy, { readOnly: true });
  try {
    const names = snapshot
      .prepare('SELECT key_name FROM agents')
      .all()
      .map((row) => String(row['key_name']));
    return { agents: names.length, names: [...names, NODE_KEY] };
  } finally {
    snapshot.close();
  }
}
