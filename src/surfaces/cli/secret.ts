/** Reads a secret without showing it: from a prompt on a terminal, from standard input otherwise. */
import { SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';
import { ask } from './prompt.ts';

/** Longest secret that is read, bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk instanceof Uint8Array ? chunk : String(chunk));
    size += bytes.length;
    if (size > MAX_SECRET_BYTES)
      throw new SvcError('too_large', { message: `Standard input is over ${MAX_SECRET_BYTES} bytes.` });
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The secret without its line break. @throws SvcError `cancelled` where nobody types one, `too_large` */
export async function readSecret(io: CliIo, prompt: string): Promise<string> {
  if (io.stdin.isTTY !== true) return (await readAll(io.stdin)).replace(/\r?\n$/, '');
  return ask(io, prompt, true);
}
