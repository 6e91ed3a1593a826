/** Keeps a secret, such as a master key, in a file that only its owner reads. */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncDirectory } from '../../foundation/atomic-file.ts';
import { diskTrouble } from '../../foundation/disk-trouble.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';
import { refuseDash } from './new-file.ts';

/**
 * Writes a secret to a new file of mode 0600 and waits until it is on disk. An existing file is
 * never overwritten: it may hold the only copy of another identity.
 * @param what the secret in words, such as "master key"
 * @throws SvcError `not_writable`
 */
export function saveSecret(file: string, content: string, what: string): void {
  refuseDash(file);
  let isOurs = false;
  try {
    const handle = openSync(file, 'wx', PRIVATE_FILE_MODE);
    isOurs = true;
    try {
      writeFileSync(handle, content);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    syncDirectory(dirname(file));
  } catch (error) {
    // Half a secret under this name would only be in the way of the next try.
    if (isOurs) rmSync(file, { force: true });
    throw new SvcError('not_writable', {
      message:
        codeOf(error) === 'EEXIST'
          ? `${file} exists already and is never overwritten: choose another name for the ${what}.`
          : `The ${what} cannot be written to ${file}${diskTrouble(error)} Nothing was registered.`,
      cause: error,
    });
  }
}

/** Takes away a secret that is of no use to anybody, and would only be in the way of the next try. */
export function discardSecret(file: string): void {
  rmSync(file, { force: true });
}

/** @throws SvcError `not_writable` */
export function saveMasterKey(file: string, aid: string, masterHex: string): void {
  const remark = `# Master key of ${aid}: the only way to restore this identity. Keep it offline.`;
  saveSecret(file, `${remark}\n${masterHex}\n`, 'master key');
}
