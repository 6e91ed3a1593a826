/** The tag of a network. Each of its datagrams begins with it, and a datagram of another network gets no answer. */
import { createHash } from 'node:crypto';

/** Bytes of a network's tag. */
export const NETWORK_TAG_BYTES = 8;

/** The public network has the empty name. */
export function networkTag(network: string): Uint8Array {
  const hash = createHash('sha256').update(`svcd/network/${network}\0`).digest();
  return new Uint8Array(hash.subarray(0, NETWORK_TAG_BYTES));
}
