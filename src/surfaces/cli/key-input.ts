/** Reads private keys from a file, a prompt, a pipe, or the command line. */
import { readFileSync, statSync } from 'node:fs';
import { SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';

/** Largest key file, bytes. */
const MAX_KEY_FILE_BYTES = 64 * 1024;

/** Help text of options with a key. */
export const KEY_FORMS = 'a file with the key, - to be prompted, or 64 hex characters';

/** The content of a key file without its comments. */
function readKeyFile(file: string): string {
  try {
    if (statSync(file).size > MAX_KEY_FILE_BYTES) return '';
    const lines = readFileSync(file, 'utf8').split(/\r?\n/);
    return lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).join('\n');
  } catch (error) {
    // The text is not repeated: it may be a mistyped key.
    throw new SvcError('bad_key', {
      message: 'This is neither a private key of 64 hex characters nor a readable file.',
      cause: error,
    });
  }
}

/**
 * The text of a private key, unchecked.
 * @param given as described by `KEY_FORMS`
 * @throws SvcError `bad_key` if a file cannot be read, `cancelled`, `too_large`
 */
export async function readKey(context: CliContext, given: string, prompt: string): Promise<string> {
  if (given === '-') return context.readSecret(prompt);
  if (!/^(0x)?[0-9a-f]{64}$/i.test(given)) return readKeyFile(given);
  context.info('Other programs can see a key on the command line. Use a file, or - to be prompted.');
  return given;
}
