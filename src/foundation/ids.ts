/** Names for what this daemon keeps: entries of lists, tunnels. */
import { randomBytes } from 'node:crypto';

const ID_BYTES = 8;

/** A name that nothing else has, in hex. */
export function newId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}
