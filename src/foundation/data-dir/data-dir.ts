/** The data directory of a daemon: for one daemon at a time, and private to its user. */
import { randomBytes } from 'node:crypto';
import { chmodSync, lstatSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, isoTime } from '../clock.ts';
import { codeOf, SvcError } from '../errors.ts';
import { describeDiskError, makeDirectory, OTHERS_MODE, PRIVATE_DIRECTORY_MODE, writeFileAtomic } from '../files.ts';
import { keepFromOthers } from '../windows-access.ts';
import { type DaemonInfo, daemonInfoFile, readDaemonInfo, type SharedMcp } from './daemon-info.ts';
import { finishRestore, removeStaleBackups } from './finish-restore.ts';
import { acquireLock, type Lock } from './lock.ts';

/** Random bytes in the key that proves the identity of the API. */
const PROOF_KEY_BYTES = 32;

interface DataDirOptions {
  /** Absolute path. Created if it is missing. */
  readonly path: string;
  /** Version of svcd, for daemon.json. */
  readonly version: string;
}

export class DataDir {
  readonly path: string;
  /** Key for the proofs of this process, in daemon.json, which only this user can read. */
  readonly proofKey: Uint8Array;
  readonly #lock: Lock;
  readonly #info: DaemonInfo;

  private constructor(path: string, lock: Lock, info: Omit<DaemonInfo, 'proof_key'>) {
    this.path = path;
    this.#lock = lock;
    this.proofKey = randomBytes(PROOF_KEY_BYTES);
    this.#info = { ...info, proof_key: Buffer.from(this.proofKey).toString('base64url') };
    this.#write(this.#info);
  }

  /**
   * Creates the directory if necessary, removes the access of other users, and locks it until `close` or the end of the
   * process.
   * @throws SvcError `already_running` with `details {data_dir, pid, api_addr}`, `not_writable`
   */
  static open({ path, version }: DataDirOptions, { clock }: { readonly clock: Clock }): DataDir {
    makePrivate(path);
    const lock = acquireLock(path);
    if (lock === null) throw alreadyRunning(path);
    try {
      finishRestore(path);
      removeStaleBackups(path);
      const started_at = isoTime(clock.now());
      return new DataDir(path, lock, { pid: process.pid, api_addr: null, started_at, version });
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Path of a file in the directory. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Publishes the API address to local programs: `host:port` to connect to, never `0.0.0.0`. */
  announce(apiAddr: string): void {
    this.#write({ ...this.#info, api_addr: apiAddr });
  }

  /** Publishes the address at which a node without an API accepts other MCP clients of this user. */
  announceMcp(mcp: SharedMcp): void {
    this.#write({ ...this.#info, mcp });
  }

  /** Removes daemon.json and releases the directory. */
  close(): void {
    rmSync(daemonInfoFile(this.path), { force: true });
    this.#lock.release();
  }

  #write(info: DaemonInfo): void {
    writeFileAtomic(daemonInfoFile(this.path), `${JSON.stringify(info)}\n`);
  }
}

function makePrivate(path: string): void {
  try {
    makeDirectory(path, PRIVATE_DIRECTORY_MODE);
    if (process.platform === 'win32') return keepFromOthers(path, true);
    const { uid, mode } = statSync(path);
    const own = process.getuid?.();
    if (own !== 0 && uid !== own) {
      throw new SvcError('not_writable', {
        message: `The data directory ${path} belongs to another user. Give another --data-dir.`,
      });
    }
    if ((mode & OTHERS_MODE) !== 0) chmodSync(path, PRIVATE_DIRECTORY_MODE);
    refuseForeign(path, new Set([0, uid, own]));
  } catch (error) {
    if (error instanceof SvcError) throw error;
    const code = codeOf(error);
    const message =
      code === 'EEXIST' || code === 'ENOTDIR'
        ? `The data directory ${path} is not a directory, or is below a file. Give another --data-dir.`
        : `The data directory ${path} cannot be used${describeDiskError(error)}`;
    throw new SvcError('not_writable', { message, cause: error });
  }
}

/** Files of another user could be keys, settings or a program. */
function refuseForeign(path: string, owners: ReadonlySet<number | undefined>): void {
  for (const name of readdirSync(path)) {
    const stats = lstatSync(join(path, name), { throwIfNoEntry: false });
    if (stats === undefined || owners.has(stats.uid)) continue;
    throw new SvcError('not_writable', {
      message: `${join(path, name)} belongs to another user. Remove it from the data directory, or give another --data-dir.`,
    });
  }
}

function alreadyRunning(path: string): SvcError {
  const info = readDaemonInfo(path);
  const who = info === null ? 'Another svcd' : `Another svcd (process ${info.pid})`;
  const where = info?.api_addr === null || info === null ? '' : `; its API is at ${info.api_addr}`;
  return new SvcError('already_running', {
    message: `${who} runs on the data directory ${path}${where}. Stop it with "svc stop", or choose another --data-dir.`,
    details: { data_dir: path, pid: info?.pid ?? null, api_addr: info?.api_addr ?? null },
  });
}
