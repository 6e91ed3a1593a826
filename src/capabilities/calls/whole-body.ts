/** Short bodies whose length is known, in one piece: what is signed of a call can then cover them. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { SvcError } from '../../foundation/errors.ts';
import type { Body } from './exchange.ts';

/** Longest body of known length that waits for its end before a signed call goes out, bytes. */
export const MAX_SIGNED_BODY_BYTES: number = 256 * 1024;

/** True for a stream of a known length, bytes, that is short enough to wait for. */
export function isShort(body: Body, length: number | undefined): body is Readable {
  return body instanceof Readable && length !== undefined && length <= MAX_SIGNED_BODY_BYTES;
}

/**
 * All that a stream gives.
 * @throws SvcError `cancelled` where it breaks off
 */
export async function wholeBody(body: Readable): Promise<Buffer> {
  try {
    return await buffer(body);
  } catch (cause) {
    throw new SvcError('cancelled', { message: 'The body of the call broke off before its end.', cause });
  }
}
