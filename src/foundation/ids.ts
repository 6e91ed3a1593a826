/** Local IDs, for list entries and tunnels. */
import { randomBytes } from 'node:crypto';

const ID_BYTES = 8;

/** The form of these IDs. */
export const LISTED_ID_PATTERN = '^[0-9a-f]{16}$';

/** A random unique ID in hex. */
export function newId(): string {
  return randomBytes(ID_BYTES).toString('hex');
}
