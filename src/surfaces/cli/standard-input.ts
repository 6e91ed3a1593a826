/** Reads standard input and other streams up to a limit. */
import { SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';

/** All bytes of a source. @throws `tooLarge` once there are more, and errors of the source */
export async function readAll(
  source: AsyncIterable<unknown> | Iterable<unknown>,
  maxBytes: number,
  tooLarge: SvcError,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk instanceof Uint8Array ? chunk : String(chunk));
    size += bytes.length;
    if (size > maxBytes) throw tooLarge;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** @throws SvcError `too_large` */
export async function readStandardInput({ stdin }: CliIo, maxBytes: number): Promise<Buffer> {
  const message = `Standard input has more than ${maxBytes} bytes.`;
  return readAll(stdin, maxBytes, new SvcError('too_large', { message }));
}
