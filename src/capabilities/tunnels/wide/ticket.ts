/** What the lanes of one wide connection have in common: the caller draws it and sends it first on each of them. */
import { randomBytes } from 'node:crypto';
import { toHex } from '../../../foundation/bytes.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import { readExactly } from '../../../network/links/wire.ts';

const TICKET_BYTES = 16;
/** Time for the ticket to come, milliseconds. */
export const TICKET_TIMEOUT_MS = 10_000;

export function drawTicket(): Uint8Array {
  return randomBytes(TICKET_BYTES);
}

/** The name of the node that calls; empty on this very daemon. */
export function peerOf(nodeKey: Uint8Array | null): string {
  return toHex(nodeKey ?? new Uint8Array());
}

/**
 * The name of the connection that a link belongs to: nobody but its own caller, from the same node,
 * can name it.
 * @throws SvcError `protocol_error`, `connect_failed`, or the signal's reason
 */
export async function readTicket(link: LinkStream, signal: AbortSignal): Promise<string> {
  const ticket = await readExactly(link, TICKET_BYTES, signal);
  return `${peerOf(link.nodeKey)} ${link.caller} ${link.called} ${toHex(ticket)}`;
}
