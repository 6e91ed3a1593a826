/** Saves a secret, such as a master key, to a file that only its owner can read. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { describeDiskError, PRIVATE_FILE_MODE, syncDirectory } from '../../foundation/files.ts';
import { keepFromOthers } from '../../foundation/windows-access.ts';
import { rejectName } from './new-file.ts';

/**
 * Writes a secret to a new file with mode 0600 and flushes it to disk. An existing file is never overwritten: it may
 * hold the only copy of another identity.
 * @param what the name of the secret, such as "master key"
 * @throws SvcError `not_writable`
 */
export function saveSecret(file: string, content: string, what: string): void {
  rejectName(file);
  let isOurs = false;
  try {
    const handle = openSync(file, 'wx', PRIVATE_FILE_MODE);
    isOurs = true;
    try {
      keepFromOthers(resolve(file), false);
      writeFileSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    syncDirectory(dirname(file));
  } catch (error) {
    // A partial file would block the next attempt.
    if (isOurs) rmSync(file, { force: true });
    if (error instanceof SvcError) throw error;
    throw new SvcError('not_writable', {
      message:
        codeOf(error) === 'EEXIST'
          ? `${file} exists and is never overwritten. Choose another name for the ${what}.`
          : `The ${what} cannot be written to ${file}${describeDiskError(error)} Nothing was registered.`,
      cause: error,
    });
  }
}

/** Deletes a secret that is useless and would block the next attempt. */
export function discardSecret(file: string): void {
  rmSync(file, { force: true });
}

/** @throws SvcError `not_writable` */
export function saveMasterKey(file: string, aid: string, masterHex: string): void {
  const remark = `# Master key of ${aid}: the only way to restore this identity. Keep it offline.`;
  saveSecret(file, `${remark}\n${masterHex}\n`, 'master key');
}
