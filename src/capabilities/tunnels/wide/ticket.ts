/** What the lanes of one wide connection have in common: the caller draws it and sends it first on each of them. */
import { randomFillSync } from 'node:crypto';
import { toHex } from '../../../foundation/bytes.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import { readExactly } from '../../../network/links/wire.ts';

const TICKET_BYTES = 16;
/** Time for the ticket to come, milliseconds. */
export const TICKET_TIMEOUT_MS = 10_000;

/** Random bytes for many tickets, drawn at a time: each draw costs about as much as one of them alone. */
const POOL_BYTES = 256 * TICKET_BYTES;
const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;

/** A ticket that nobody can guess. No byte of it stays here, and none is ever given out again. */
export function drawTicket(): Uint8Array {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const from = used;
  used += TICKET_BYTES;
  const ticket = pool.slice(from, used);
  pool.fill(0, from, used);
  return ticket;
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
