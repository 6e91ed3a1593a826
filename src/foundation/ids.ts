/** Local IDs, for list entries and tunnels. */
import { randomBytes } from 'node:crypto';

const ID_BYTES = 8;

/** A random unique ID in hex. */
export function newId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}
