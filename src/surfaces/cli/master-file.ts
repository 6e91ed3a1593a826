/** Keeps a secret, such as a master key, in a file that only its owner reads. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { SvcError } from '../../foundation/errors.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';

/**
 * Writes a secret to a new file of mode 0600 and waits until it is on disk. An existing file is
 * never overwritten: it may hold the only copy of another identity.
 * @param what the secret in words, such as "master key"
 * @throws SvcError `not_writable`
 */
export function saveSecret(file: string, content: string, what: string): void {
  try {
    const handle = openSync(file, 'wx', PRIVATE_FILE_MODE);
    try {
      writeSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    throw new SvcError('not_writable', {
      message: exists
        ? `${file} exists already and is never overwritten: choose another name for the ${what}.`
        : `The ${what} cannot be written to ${file}. Nothing was registered.`,
      cause: error,
    });
  }
}

/** @throws SvcError `not_writable` */
export function saveMasterKey(file: string, aid: string, masterHex: string): void {
  const remark = `# Master key of ${aid}: the only way to restore this identity. Keep it offline.`;
  saveSecret(file, `${remark}\n${masterHex}\n`, 'master key');
}
