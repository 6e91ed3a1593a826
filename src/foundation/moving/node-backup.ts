/**
 * Takes a backup of a node from its data directory, whether a daemon runs there or not: the database
 * in one consistent read, which the daemon does not notice, then the keys and the configuration.
 * Never in the daemon's own process, and never the lock: see data-dir/lock.ts.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { readConfigFile } from '../config/file.ts';
import { backupDirectory, removeStaleBackups } from '../data-dir/leftovers.ts';
import { CONFIG_FILE, DATABASE_FILE, KEYS_DIRECTORY } from '../data-dir/names.ts';
import { describeDiskError, describeOpenError } from '../disk-errors.ts';
import { codeOf, SvcError } from '../errors.ts';
import { PRIVATE_DIRECTORY_MODE } from '../file-modes.ts';
import { isKeyFile, keyFileName, NODE_KEY } from '../keys/key-store.ts';
import type { FileSource } from './node-archive.ts';

/** Milliseconds to wait where the daemon writes. */
const BUSY_TIMEOUT_MS = 10_000;
/** How often keys are looked for that an agent of the snapshot has: one may be on its way. */
const KEY_ATTEMPTS = 3;
export interface Snapshot {
  readonly files: readonly FileSource[];
  readonly agents: number;
  /** Removes what lies on the disk of it. */
  dispose(): void;
}

export interface BackupOptions {
  /** Absolute path. */
  readonly dataDir: string;
  /** Where the keys are; what config.toml says where it is left out. */
  readonly keyDir?: string | undefined;
  readonly pid: number;
}

/**
 * Takes a snapshot of a data directory.
 * @throws SvcError `not_found` where there is no node; `key_damaged` where keys are missing; `store_corrupt`, `config_invalid`, `not_writable`
 */
export function takeSnapshot({ dataDir, keyDir, pid }: BackupOptions): Snapshot {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database))
    throw new SvcError('not_found', { message: `There is no node in ${dataDir}: it has no ${DATABASE_FILE}.` });
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
      message: `The backup could not be taken from ${dataDir}${troubleOf(error, database)}`,
      cause: error,
    });
  }
}

/** SQLite's code for a disk or database that is full. */
const SQLITE_FULL = 13;

/** The end of a sentence on why a copy cannot be made. */
function troubleOf(error: unknown, database: string): string {
  if (error instanceof Error && 'syscall' in error) {
    const path = 'path' in error ? `: ${String(error.path)}` : '';
    return `${path}${describeDiskError(error)}`;
  }
  if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_FULL)
    return ': the disk is full, free some room.';
  const said = error instanceof Error ? ` (${error.message}).` : '.';
  return describeOpenError(database) ?? said;
}

/** A copy of the database, and all the keys that it names. */
function consistent(database: string, directory: string, keyDir: string) {
  for (let attempt = 1; ; attempt++) {
    const before = readKeys(keyDir);
    const copy = join(directory, `${attempt}.db`);
    const { agents, names } = copyDatabase(database, copy);
    // A key comes before the row that names it, and goes after it.
    const keyFiles = new Map([...before, ...readKeys(keyDir)]);
    const missing = names.filter((name) => !keyFiles.has(keyFileName(name)));
    if (missing.length === 0) return { copy, keyFiles, agents };
    if (attempt === KEY_ATTEMPTS)
      throw new SvcError('key_damaged', {
        message: `${missing.length} keys of agents are not in ${keyDir}. If the daemon keeps its keys elsewhere, say where with --key-dir.`,
      });
  }
}

function readKeys(directory: string): Map<string, Uint8Array> {
  const keys = new Map<string, Uint8Array>();
  if (!existsSync(directory)) return keys;
  for (const name of readdirSync(directory)) {
    // What a user has put beside the keys is none of ours.
    if (!isKeyFile(name)) continue;
    try {
      keys.set(name, readFileSync(join(directory, name)));
    } catch (error) {
      // It went while we looked.
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
