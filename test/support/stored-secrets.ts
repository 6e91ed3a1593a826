import { StoredSecrets } from '../../src/foundation/keys/stored-secrets.ts';

/** The secrets of a node whose seed has a repeated byte. */
export function testSecrets(byte = 1): StoredSecrets {
  return new StoredSecrets(new Uint8Array(32).fill(byte));
}
