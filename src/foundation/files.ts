/** Writes, moves and creates files and folders, and explains disk errors to users. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { link, lstat, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { codeOf, SvcError } from './errors.ts';

/** Mode of private files. Windows ignores modes. */
export const PRIVATE_FILE_MODE = 0o600;
export const PRIVATE_DIRECTORY_MODE = 0o700;
/** All permissions of other users. */
export const OTHERS_MODE = 0o077;

/** Error codes of file systems without hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Moves a file to another name in the same file system.
 * @returns false if the target exists; nothing is changed then
 * @throws the system error
 */
export async function moveWithoutReplacing(file: string, target: string): Promise<boolean> {
  try {
    // Unlike a rename, a link never replaces a file.
    await link(file, target);
    await rm(file);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!NO_LINKS.has(codeOf(error))) throw error;
    if ((await lstat(target).catch(() => null)) !== null) return false;
    await rename(file, target);
    return true;
  }
}

/**
 * Replaces a file atomically, readable by its owner only. Readers see the old or the new content, never a part, even
 * after a power failure. A symbolic link is replaced, not followed.
 * @throws SvcError `not_writable` if the write fails; the old file is then unchanged
 */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.tmp`;
  try {
    rmSync(temporary, { force: true });
    // "wx" fails if a link was created here meanwhile, so the write cannot follow it.
    const file = openSync(temporary, 'wx', PRIVATE_FILE_MODE);
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    replaceFile(temporary, path);
    syncDirectory(dirname(path));
  } catch (error) {
    removeQuietly(temporary);
    throw new SvcError('not_writable', {
      message: `${path} cannot be written${describeDiskError(error)}`,
      cause: error,
    });
  }
}

/**
 * Overwrites a file that exists and cannot be replaced. A power failure may leave a part of the content, so keep a copy
 * of the old one.
 * @throws SvcError `not_writable`
 */
export function writeFileInPlace(path: string, content: string | Uint8Array): void {
  const bytes = Buffer.from(content);
  try {
    const file = openSync(path, 'r+');
    try {
      writeFileSync(file, bytes);
      ftruncateSync(file, bytes.length);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new SvcError('not_writable', {
      message: `${path} cannot be written${describeDiskError(error)}`,
      cause: error,
    });
  }
}

/** Errors of Windows while another program, such as a virus scanner, has one of the files open for a moment. */
const OPEN_ELSEWHERE: ReadonlySet<string> = new Set(['EPERM', 'EACCES', 'EBUSY']);
/** Waits before further attempts, milliseconds. */
const REPLACE_AGAIN_MS = [10, 20, 50, 100, 200, 400];

/**
 * Renames a file and replaces the target. On Windows that fails while another program reads the target.
 * @throws the system error
 */
export function replaceFile(
  file: string,
  target: string,
  rename: typeof renameSync = renameSync,
  platform: string = process.platform,
): void {
  for (const waitMs of platform === 'win32' ? REPLACE_AGAIN_MS : []) {
    try {
      return rename(file, target);
    } catch (error) {
      if (!OPEN_ELSEWHERE.has(codeOf(error))) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMs);
    }
  }
  rename(file, target);
}

/** The text of a file that a user wrote. Programs of Windows write a byte order mark, and PowerShell UTF-16. */
export function readText(file: string): string {
  const bytes = readFileSync(file);
  const isWide = bytes[0] === 0xff && bytes[1] === 0xfe;
  return new TextDecoder(isWide ? 'utf-16le' : 'utf-8').decode(bytes);
}

/** Flushes the content of a file to disk. */
export function syncFile(path: string): void {
  // Windows flushes only files that are open for writing.
  const file = openSync(path, process.platform === 'win32' ? 'r+' : 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes a rename or removal durable. Windows has no such call and does not need one. */
export function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** Ignores failures: the error that led here is more useful than a failed cleanup. */
function removeQuietly(path: string): void {
  try {
    rmSync(path);
  } catch {
    // The next write removes the file.
  }
}

/** Advice by system error code. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'the disk is full, free some space'],
  ['EDQUOT', 'your disk quota is used up, free some space'],
  ['EROFS', 'the disk is mounted read-only'],
  ['EACCES', 'permission denied, check its permissions'],
  ['EPERM', 'permission denied, check its permissions'],
  ['EBUSY', 'another program uses it, close that program'],
  ['ENOENT', 'a folder or a disk of its path does not exist'],
  ['EMFILE', 'this process has too many files open, raise its limit ("ulimit -n")'],
  ['ENFILE', 'this machine has too many files open'],
]);

/** The end of an error message: ` (ENOSPC): the disk is full, free some space.` */
export function describeDiskError(error: unknown): string {
  const code = codeOf(error);
  const advice = ADVICE.get(code);
  return advice === undefined ? ` (${code}).` : ` (${code}): ${advice}.`;
}

/** Descriptors that SQLite needs for a database: the file, its journal, its shared memory and its folder. */
const DESCRIPTORS = 4;

/**
 * Finds out why SQLite cannot open a file, because SQLite does not say. The file itself is not opened, because closing
 * it could release a lock on it.
 * @returns the end of an error message; undefined if the cause is unknown
 */
export function describeOpenError(file: string): string | undefined {
  const opened: number[] = [];
  try {
    accessSync(dirname(file), constants.R_OK | constants.W_OK | constants.X_OK);
    while (opened.length < DESCRIPTORS) opened.push(openSync(dirname(file), 'r'));
    accessSync(file, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    return describeDiskError(error);
  } finally {
    for (const one of opened) closeSync(one);
  }
}

/** True if a folder exists; false also if it cannot be accessed. */
function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/**
 * Creates a folder and its missing parents. Node's own recursive `mkdir` never returns on file systems that report "no
 * such entry" for every new name, such as `/proc`.
 * @param mode of the created folders
 * @throws the system error of the first folder that cannot be created
 */
export function makeDirectory(path: string, mode: number): void {
  const missing: string[] = [];
  // The root can be missing too, such as a drive.
  for (let at = resolve(path); !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  for (const one of missing.toReversed())
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      // Another process created it at the same time.
      if (codeOf(error) !== 'EEXIST' || !isDirectory(one)) throw error;
    }
  // Something else has this name: lets the system report the error.
  if (!isDirectory(path)) mkdirSync(path, { mode });
}
