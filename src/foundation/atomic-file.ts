import { closeSync, fsyncSync, ftruncateSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describeDiskError } from './disk-errors.ts';
import { SvcError } from './errors.ts';
import { PRIVATE_FILE_MODE } from './file-modes.ts';

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
    renameSync(temporary, path);
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
