import type { IncomingMessage } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';

/** The complete body of a request. @throws SvcError `too_large` */
export async function collectBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new SvcError('too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
