/** Reads request bodies. */
import { SvcError } from '../../foundation/errors.ts';
import { parseJson } from '../../foundation/json.ts';

/** Largest JSON body, in bytes. */
export const JSON_BODY_LIMIT_BYTES = 1024 * 1024;

/**
 * Reads a stream to its end.
 * @throws SvcError `too_large`
 */
export async function readBytes(stream: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > limitBytes) throw new SvcError('too_large', { details: { limit_bytes: limitBytes } });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The value of a JSON body; undefined for an empty one.
 * @throws SvcError `invalid_json`
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new SvcError('invalid_json');
  }
  return parseJson(text);
}
