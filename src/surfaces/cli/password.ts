/** Reads the password of a file from a file, a prompt, or standard input. */
import { SvcError } from '../../foundation/errors.ts';
import { readText } from '../../foundation/files.ts';
import { PASSPHRASE_COST, type Passphrase } from '../../foundation/keys/passphrase.ts';
import type { CliContext } from './context.ts';

/** Shortest password for encryption, characters. */
export const MIN_PASSWORD_CHARS = 8;

export interface PasswordOptions {
  readonly password_file?: string | undefined;
}

function fromFile(file: string): string {
  try {
    return readText(file).split(/\r?\n/, 1)[0] ?? '';
  } catch (cause) {
    throw new SvcError('invalid_request', { message: `The password file ${file} cannot be read.`, cause });
  }
}

/** The password that decrypts a file. @throws SvcError `invalid_request` if there is none */
export async function readPassword(context: CliContext, { password_file: file }: PasswordOptions): Promise<Passphrase> {
  const password = file === undefined ? await context.readSecret('Password: ') : fromFile(file);
  if (password === '') throw new SvcError('invalid_request', { message: 'The password is empty.' });
  return { text: password, cost: PASSPHRASE_COST };
}

/**
 * The password for encryption. On a terminal it is prompted for twice.
 * @throws SvcError `invalid_request` if it is too short, or the two differ
 */
export async function newPassword(context: CliContext, options: PasswordOptions): Promise<Passphrase> {
  const isInteractive = options.password_file === undefined && context.io.stdin.isTTY === true;
  const text = isInteractive ? await context.readSecret('New password: ') : (await readPassword(context, options)).text;
  if (text.length < MIN_PASSWORD_CHARS)
    throw new SvcError('invalid_request', {
      message: `The password has fewer than ${MIN_PASSWORD_CHARS} characters. Anyone with the file could guess it.`,
    });
  if (isInteractive && (await context.readSecret('Repeat the password: ')) !== text)
    throw new SvcError('invalid_request', { message: 'The two passwords differ.' });
  return { text, cost: PASSPHRASE_COST };
}
