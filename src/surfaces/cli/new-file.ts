/** Writes files with secrets, whole or not at all, and reads them. */
import { closeSync, createReadStream, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { windowsNameProblem } from '../../foundation/file-name.ts';
import { describeDiskError, PRIVATE_FILE_MODE, replaceFile, syncDirectory } from '../../foundation/files.ts';
import type { ByteSource } from '../../foundation/moving/byte-reader.ts';
import { SEALED_PREFIX, type SealedKind, unseal } from '../../foundation/moving/sealed-file.ts';
import { keepFromOthers } from '../../foundation/windows-access.ts';
import type { CliContext } from './context.ts';
import { type PasswordOptions, readPassword } from './password.ts';
import { SIGNALS } from './signals.ts';

/** @throws SvcError `invalid_request`, because other commands use "-" for standard output */
export function rejectDash(file: string): void {
  if (file === '-')
    throw new SvcError('invalid_request', { message: '"-" is not a file here. For a file with that name use "./-".' });
}

/**
 * Checks the name of a new file with a secret.
 * @throws SvcError `not_writable` if Windows would not write to a file of this name
 */
export function rejectName(file: string, platform: string = process.platform): void {
  rejectDash(file);
  const problem = platform === 'win32' ? windowsNameProblem(resolve(file)) : null;
  if (problem !== null)
    throw new SvcError('not_writable', {
      message: `${file} cannot be written: its name ${problem}. Choose another one.`,
    });
}

/** Checked before prompting for a password. @throws SvcError `not_writable` */
export function rejectExisting(file: string): void {
  rejectName(file);
  if (existsSync(file)) throw new SvcError('not_writable', { message: `${file} exists and is never overwritten.` });
  const directory = dirname(resolve(file));
  if (!existsSync(directory))
    throw new SvcError('not_writable', { message: `The directory ${directory} does not exist.` });
}

/**
 * Writes a new file with mode 0600. Under its final name it is complete and on disk. An existing file is never
 * overwritten.
 * @returns its size in bytes
 * @throws SvcError `not_writable`, and errors of the content
 */
export async function writeNewFile(file: string, content: ByteSource): Promise<number> {
  rejectExisting(file);
  const part = `${file}.part`;
  let size = 0;
  // A partial file may contain keys. A signal deletes it before it ends the process.
  const interrupted = (signal: NodeJS.Signals): void => {
    rmSync(part, { force: true });
    for (const one of SIGNALS) process.off(one, interrupted);
    process.kill(process.pid, signal);
  };
  for (const one of SIGNALS) process.on(one, interrupted);
  try {
    rmSync(part, { force: true });
    const handle = openSync(part, 'wx', PRIVATE_FILE_MODE);
    try {
      keepFromOthers(resolve(part), false);
      for await (const piece of content) {
        for (let at = 0; at < piece.length; ) at += writeSync(handle, piece, at);
        size += piece.length;
      }
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    replaceFile(part, file);
    syncDirectory(dirname(file));
    return size;
  } catch (error) {
    rmSync(part, { force: true });
    if (error instanceof SvcError) throw error;
    throw new SvcError('not_writable', {
      message: `${file} cannot be written${describeDiskError(error)}`,
      cause: error,
    });
  } finally {
    for (const one of SIGNALS) process.off(one, interrupted);
  }
}

/** Reads a file piece by piece. @throws SvcError `not_found` */
async function* readFilePieces(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file);
  } catch (error) {
    throw new SvcError('not_found', { message: `${file} cannot be read (${codeOf(error)}).`, cause: error });
  }
}

async function isSealed(file: string): Promise<boolean> {
  for await (const piece of readFilePieces(file))
    return Buffer.from(piece).toString('latin1').startsWith(SEALED_PREFIX);
  return false;
}

/**
 * Reads a file, and decrypts it with its password if it is encrypted.
 * @throws SvcError `not_found`, and errors of `readPassword` and `unseal`
 */
export async function openFile(context: CliContext, kind: SealedKind, file: string, options: PasswordOptions) {
  rejectDash(file);
  if (!(await isSealed(file))) return readFilePieces(file);
  return unseal(kind, await readPassword(context, options), readFilePieces(file));
}
