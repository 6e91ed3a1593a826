/**
 * Loads native code from the single file. The system loads libraries from files only, so the code is written into a
 * private folder, once per content. Each start checks it again, so that only the bytes of this program are loaded.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { SvcError } from './errors.ts';
import { OTHERS_MODE, PRIVATE_DIRECTORY_MODE, PRIVATE_FILE_MODE, replaceFile } from './files.ts';
import { readPackageFile } from './package-file.ts';

/**
 * The cache directory of this user.
 * @throws Error if this user has no home directory
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
 * Ensures that a file with this content, named by its hash, is in the given private folder. Returns its path.
 * @throws Error if the folder cannot be created or written, is a link, has another owner, or is accessible to others
 */
export function keptFile(directory: string, name: string, content: Uint8Array): string {
  mkdirSync(directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  const stat = lstatSync(directory);
  const isOurs = process.platform === 'win32' || (stat.uid === process.getuid?.() && (stat.mode & OTHERS_MODE) === 0);
  if (!stat.isDirectory() || !isOurs) throw new Error(`${directory} is not a private folder of this user`);
  const hash = createHash('sha256').update(content).digest('hex');
  const file = join(directory, `${name}-${hash}.node`);
  if (holds(file, content)) return file;
  // Another process may do this at the same moment. Each writes its own file, and all have the same content.
  const own = `${file}.${process.pid}`;
  rmSync(own, { force: true });
  writeFileSync(own, content, { flag: 'wx', mode: PRIVATE_FILE_MODE });
  replaceFile(own, file);
  return file;
}

function open(file: string): unknown {
  const addon: { readonly exports: unknown } = { exports: {} };
  process.dlopen(addon, file);
  return addon.exports;
}

/** For this start only. Except on Windows, the loaded code remains usable after the file is deleted. */
function openOnce(name: string, content: Uint8Array): unknown {
  const directory = mkdtempSync(join(tmpdir(), 'svcd-'));
  try {
    return open(keptFile(directory, name, content));
  } finally {
    if (process.platform !== 'win32') rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Loads native code from the single file.
 * @throws SvcError `not_writable` if no folder is writable and allows the system to load code
 */
export function loadAddon(name: string, environment: NodeJS.ProcessEnv = process.env): unknown {
  const content = readPackageFile(`native/${name}.node`);
  let directory = 'a cache folder of this user';
  try {
    directory = cacheDirectory(environment);
    return open(keptFile(directory, name, content));
  } catch {
    // No home, or a home that is read-only or mounted noexec.
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
