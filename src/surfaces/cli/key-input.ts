/** Private keys that commands are given: in a file, typed at a prompt or piped, or on the command line. */
import { readFileSync, statSync } from 'node:fs';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';

/** Largest file that is read for a key, bytes. */
const MAX_KEY_FILE_BYTES = 64 * 1024;

/** What commands say of an option that takes a key. */
export const KEY_FORMS = 'a file that holds it, - to be asked for it, or 64 hex characters';

/** The text of a key file without its remarks. */
function readKeyFile(file: string): string {
  try {
    if (statSync(file).size > MAX_KEY_FILE_BYTES) return '';
    const lines = readFileSync(file, 'utf8').split(/\r?\n/);
    return lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).join('\n');
  } catch (error) {
    // The text is not repeated: it may be a mistyped key.
    throw new SvcError('bad_key', {
      message: 'This is neither a private key of 64 hex characters nor a file that can be read.',
      cause: error,
    });
  }
}

/**
 * The text of a private key, unchecked.
 * @param given as `KEY_FORMS` says
 * @throws SvcError `bad_key` where a file cannot be read, `cancelled`, `too_large`
 */
export async function readKey(context: CliContext, given: string, prompt: string): Promise<string> {
  if (given === '-') return context.readSecret(prompt);
  if (!/^(0x)?[0-9a-f]{64}$/i.test(given)) return readKeyFile(given);
  context.note('A key on the command line can be seen by other programs: give a file, or - to be asked for it.');
  return given;
}
