/**
 * Native code out of the single file. The system loads it from files only, so it is written into a folder that nobody
 * else may open, once for each content, and looked at again at each start: only the bytes that came with this program are
 * loaded.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { SvcError } from './errors.ts';
import { OTHERS_MODE, PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE } from './file-modes.ts';
import { readPackageFile } from './package-file.ts';

/**
 * Where programs of this user keep what can be made again.
 * @throws Error where this user has no home directory
 */
function cacheDirectory({ XDG_CACHE_HOME = '', LOCALAPPDATA = '' }: NodeJS.ProcessEnv): string {
  if (process.platform === 'win32' && LOCALAPPDATA !== '') return join(LOCALAPPDATA, 'svcd', 'native');
  return join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache'), 'svcd', 'native');
}

function holds(file: string, content: Uint8Array): boolean {
  try {
    return lstatSync(file).isFile() && readFileSync(file).equals(content);
  } catch {
    return false;
  }
}

/**
 * Sees to it that a file with this content, named by its hash, is in a folder of ours; returns its path.
 * @throws Error where the folder cannot be made or written, is a link, is somebody else's, or others may open it
 */
export function keptFile(directory: string, name: string, content: Uint8Array): string {
  mkdirSync(directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  const stat = lstatSync(directory);
  const isOurs = process.platform === 'win32' || (stat.uid === process.getuid?.() && (stat.mode & OTHERS_MODE) === 0);
  if (!stat.isDirectory() || !isOurs) throw new Error(`${directory} is not a private folder of this user`);
  const hash = createHash('sha256').update(content).digest('hex');
  const file = join(directory, `${name}-${hash}.node`);
  if (holds(file, content)) return file;
  // Another start may do the same at this moment: each writes its own, and either one is right.
  const own = `${file}.${process.pid}`;
  rmSync(own, { force: true });
  writeFileSync(own, content, { flag: 'wx', mode: PRIVATE_FILE_MODE });
  renameSync(own, file);
  return file;
}

function open(file: string): unknown {
  const addon: { readonly exports: unknown } = { exports: {} };
  process.dlopen(addon, file);
  return addon.exports;
}

/** For this start only: the system keeps what it has loaded when the file is gone, but for Windows. */
function openOnce(name: string, content: Uint8Array): unknown {
  const directory = mkdtempSync(join(tmpdir(), 'svcd-'));
  try {
    return open(keptFile(directory, name, content));
  } finally {
    if (process.platform !== 'win32') rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Loads native code that is in the single file.
 * @throws SvcError `not_writable` where no folder can be written from which the system loads code
 */
export function loadAddon(name: string, environment: NodeJS.ProcessEnv = process.env): unknown {
  const content = readPackageFile(`native/${name}.node`);
  let directory = 'a cache folder of this user';
  try {
    directory = cacheDirectory(environment);
    return open(keptFile(directory, name, content));
  } catch {
    // No home, a home that cannot be written, or from which nothing may run.
  }
  try {
    return openOnce(name, content);
  } catch (cause) {
    throw new SvcError('not_writable', {
      message: `The native parts of svcd can be loaded neither from ${directory} nor from ${tmpdir()}. Set XDG_CACHE_HOME=<dir> or TMPDIR=<dir> to a writable folder without the mount option noexec.`,
      cause,
    });
  }
}
