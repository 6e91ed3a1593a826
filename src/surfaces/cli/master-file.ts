/** Keeps a secret, such as a master key, in a file that only its owner reads. */
import { writeFileSync } from 'node:fs';
import { SvcError } from '../../foundation/errors.ts';
import { PRIVATE_FILE_MODE } from '../../foundation/file-modes.ts';
import { memberOf } from '../../foundation/json.ts';

/**
 * Writes a secret to a new file of mode 0600 and waits until it is on disk. An existing file is
 * never overwritten: it may hold the only copy of another identity.
 * @param what the secret in words, such as "master key"
 * @throws SvcError `not_writable`
 */
export function saveSecret(file: string, content: string, what: string): void {
  try {
    writeFileSync(file, content, { mode: PRIVATE_FILE_MODE, flag: 'wx', flush: true });
  } catch (error) {
    throw new SvcError('not_writable', {
      message:
        memberOf(error, 'code') === 'EEXIST'
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
