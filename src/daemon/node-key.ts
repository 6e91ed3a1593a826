/** The node key: created on the first start and stored in the key store. */
import { nativeAid } from '../foundation/identity/aid.ts';
import { selfDelegation } from '../foundation/identity/delegation.ts';
import { KeyPair } from '../foundation/identity/keys.ts';
import { type KeyStore, NODE_KEY } from '../foundation/keys/key-store.ts';
import type { LocalIdentity } from '../network/links/types.ts';

/** The node as an identity. Its key is both master key and operational key. */
export interface NodeIdentity extends LocalIdentity {
  readonly key: KeyPair;
}

/** @throws SvcError `key_locked`, `key_damaged`, `not_writable` */
export function loadNodeIdentity(keys: KeyStore): NodeIdentity {
  const kept = keys.get(NODE_KEY);
  const key = kept ?? KeyPair.generate();
  if (kept === null) keys.put(NODE_KEY, key);
  const { publicKey } = key;
  const sign = (message: Uint8Array): Uint8Array => key.sign(message);
  return { key, aid: nativeAid(publicKey), delegation: selfDelegation(key), publicKey, sign };
}
