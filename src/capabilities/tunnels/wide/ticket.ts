/** What the lanes of one wide connection have in common: the caller draws it and sends it first on each of them. */
import { randomBytes } from 'node:crypto';
import type { LinkStream } from '../../../network/links/types.ts';
import { readExactly } from '../../../network/links/wire.ts';

const TICKET_BYTES = 16;

export function drawTicket(): Uint8Array {
  return randomBytes(TICKET_BYTES);
}

/**
 * The name of the connection that a link belongs to: nobody but its own caller, from the same node,
 * can name it.
 * @throws SvcError `protocol_error`, `connect_failed`, or the signal's reason
 */
export async function readTicket(link: LinkStream, signal: AbortSignal): Promise<string> {
  const ticket = await readExactly(link, TICKET_BYTES, signal);
  const node = Buffer.from(link.nodeKey ?? []).toString('hex');
  return `${node} ${link.caller} ${link.called} ${Buffer.from(ticket).toString('hex')}`;
}
