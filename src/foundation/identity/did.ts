/** The decentralized identifier (DID) of a native agent: the did:key of its master key. */
import { type Aid, DID_KEY_PREFIX, nativePublicKey } from './aid.ts';
import { encodeMultikey } from './multikey.ts';

/** `did:key:z6Mk…`; null for wallet agents, whose AIDs are hashes of keys. */
export function didOf(aid: Aid): string | null {
  const publicKey = nativePublicKey(aid);
  return publicKey === null ? null : `${DID_KEY_PREFIX}${encodeMultikey('ed25519', publicKey)}`;
}
