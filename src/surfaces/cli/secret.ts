/** Reads a secret without showing it: from a prompt on a terminal, from standard input otherwise. */
import type { CliIo } from './io.ts';
import { ask } from './prompt.ts';
import { readStandardInput } from './standard-input.ts';

/** Longest secret that is read, bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

/** The secret without its line break. @throws SvcError `cancelled` where nobody types one, `too_large` */
export async function readSecret(io: CliIo, prompt: string): Promise<string> {
  if (io.stdin.isTTY !== true)
    return (await readStandardInput(io, MAX_SECRET_BYTES)).toString('utf8').replace(/\r?\n$/, '');
  return ask(io, prompt, true);
}
