/** Buffers short bodies of known length, so that a signature can cover them. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { SvcError } from '../../foundation/errors.ts';
import type { Body } from './exchange.ts';

/** Longest body that is buffered before a signed call is sent, in bytes. */
export const MAX_SIGNED_BODY_BYTES: number = 256 * 1024;

/** True for a stream whose known length in bytes is short enough to wait for. */
export function isShort(body: Body, length: number | undefined): body is Readable {
  return body instanceof Readable && length !== undefined && length <= MAX_SIGNED_BODY_BYTES;
}

/**
 * Reads a stream to its end.
 * @throws SvcError `cancelled` if it breaks off
 */
export async function wholeBody(body: Readable): Promise<Buffer> {
  try {
    return await buffer(body);
  } catch (cause) {
    throw new SvcError('cancelled', { message: 'The body of the call ended early.', cause });
  }
}
