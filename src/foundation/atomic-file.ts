import { closeSync, fsyncSync, ftruncateSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describeDiskError } from './disk-errors.ts';
import { SvcError } from './errors.ts';
import { PRIVATE_FILE_MODE } from './file-modes.ts';

/**
 * Replaces a file as a whole, readable by its owner only: whoever reads it, and a power cut, finds
 * the old content or the new one, never a part. A symbolic link is replaced, not followed.
 * @throws SvcError `not_writable` where the disk refuses; the old file is then untouched
 */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.tmp`;
  try {
    rmSync(temporary, { force: true });
    // "wx": a link that somebody put there in between is not written through.
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
 * Writes into a file that exists and cannot be replaced. A power cut may leave a part: keep a copy of the old content.
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

/** Brings the content of a file to the disk. */
export function syncFile(path: string): void {
  // Windows flushes only what is open for writing.
  const file = openSync(path, process.platform === 'win32' ? 'r+' : 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes a rename or removal survive a power cut. Windows has no such call, and needs none. */
export function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/** The error that led here says more than a failure to tidy up would. */
function removeQuietly(path: string): void {
  try {
    rmSync(path);
  } catch {
    // Left behind; the next write removes it.
  }
}
