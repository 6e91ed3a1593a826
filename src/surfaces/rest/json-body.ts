/** Reads request bodies. */
import type { IncomingMessage } from 'node:http';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { parseJson } from '../../foundation/json.ts';

/** Largest JSON body, in bytes. */
export const JSON_BODY_LIMIT_BYTES = 1024 * 1024;

/**
 * Reads a stream to its end.
 * @param tooLarge the message of the error; by default it is about a request
 * @throws SvcError `too_large`
 */
export async function readBytes(stream: AsyncIterable<Buffer>, limitBytes: number, tooLarge?: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > limitBytes)
      throw new SvcError('too_large', {
        ...(tooLarge === undefined ? {} : { message: tooLarge }),
        details: { limit_bytes: limitBytes },
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Reads the JSON body of a request, which stays open for the error response if this fails.
 * @param isIgnored the body is read and discarded
 * @throws SvcError `too_large`, `invalid_json`; `cancelled` if the client disconnects
 */
export async function readJsonBody(request: IncomingMessage, limitBytes: number, isIgnored: boolean): Promise<unknown> {
  const tooLarge = (): SvcError =>
    new SvcError('too_large', {
      message: `The JSON body can have at most ${limitBytes} bytes here.`,
      details: { limit_bytes: limitBytes },
    });
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limitBytes) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    throw codeOf(error) === 'ECONNRESET' ? new SvcError('cancelled', { cause: error }) : error;
  }
  return isIgnored ? undefined : parseJsonBody(Buffer.concat(chunks));
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
