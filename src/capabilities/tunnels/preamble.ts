/**
 * What the called side says before the bytes of a tunnel: one byte, whether the bound service has
 * accepted. A caller need not wait for it with its own bytes. See docs/protocol-tunnels.md, step 2.
 */
import type { Duplex } from 'node:stream';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';

const STATUS: readonly (ErrorCode | null)[] = [
  null,
  'no_inbound',
  'inbound_unreachable',
  'access_denied',
  'rate_limited',
  'protocol_error',
  'calls_only',
];

/** The byte of an outcome: null is success. */
export function statusByte(code: ErrorCode | null): number {
  const byte = STATUS.indexOf(code);
  return byte < 0 ? STATUS.indexOf('protocol_error') : byte;
}

/** What a byte says: null is success. */
export function outcomeOf(byte: number | undefined): ErrorCode | null {
  const code = byte === undefined ? undefined : STATUS[byte];
  return code === undefined ? 'protocol_error' : code;
}

/**
 * Reads the byte, where nothing else is to come.
 * @throws SvcError what the called side says, `protocol_error` where it says nothing sensible
 */
export async function readStatus(link: Duplex): Promise<void> {
  const code = await new Promise<ErrorCode | null>((resolve) => {
    link.once('data', (chunk: Buffer) => resolve(outcomeOf(chunk[0])));
    link.once('close', () => resolve('protocol_error'));
  });
  if (code !== null) throw new SvcError(code);
}
