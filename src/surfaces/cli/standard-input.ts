/** Reads standard input to its end. */
import { SvcError } from '../../foundation/errors.ts';
import type { CliIo } from './io.ts';

/** @throws SvcError `too_large` */
export async function readStandardInput({ stdin }: CliIo, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin as AsyncIterable<unknown>) {
    const bytes = Buffer.from(chunk instanceof Uint8Array ? chunk : String(chunk));
    size += bytes.length;
    if (size > maxBytes) throw new SvcError('too_large', { message: `Standard input is over ${maxBytes} bytes.` });
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
