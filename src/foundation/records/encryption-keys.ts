/** Encryption keys for notes (record 0x11): the X25519 keys that an agent can open notes with. */
import { createHash } from 'node:crypto';
import { equalBytes } from '../bytes.ts';
import { encodeCbor, isBytes, isUint } from '../cbor.ts';
import { MAX_UNIX_S } from '../domain/time.ts';
import { checkCount, checked, decodeMap, invalidField } from './fields.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from './types.ts';

export interface EncryptionKey {
  /** 8 bytes that identify the key in a note. They are derived from the key and not transmitted. */
  readonly keyId: Uint8Array;
  /** 32-byte X25519 public key. */
  readonly publicKey: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
}

export const KEY_ID_BYTES = 8;
export const X25519_PUBLIC_KEY_BYTES = 32;
/** Maximum number of keys per agent: the newest, and older ones for notes in transit. */
export const MAX_ENCRYPTION_KEYS = 4;
const KEY_ID_DOMAIN = 'svcd/key-id/v1\0';

/** The id of an X25519 public key: the first 8 bytes of its SHA-256 under a prefix. */
export function encryptionKeyId(publicKey: Uint8Array): Uint8Array {
  const digest = createHash('sha256').update(KEY_ID_DOMAIN).update(publicKey).digest();
  return Uint8Array.from(digest.subarray(0, KEY_ID_BYTES));
}

/** Keys must be newest first and unique. */
function checkKeys(keys: readonly EncryptionKey[]): void {
  if (keys.length === 0) throw invalidField('keys', 'is empty');
  checkCount('keys', keys, MAX_ENCRYPTION_KEYS);
  for (const [index, key] of keys.entries()) {
    if (key.publicKey.length !== X25519_PUBLIC_KEY_BYTES) throw invalidField('keys', 'contains an invalid X25519 key');
    if (!isUint(key.createdAt, MAX_UNIX_S)) throw invalidField('keys', 'contains an invalid time');
    const earlier = keys.slice(0, index);
    if (earlier.some((other) => other.createdAt < key.createdAt)) throw invalidField('keys', 'is not newest first');
    if (earlier.some((other) => equalBytes(other.keyId, key.keyId)))
      throw invalidField('keys', 'contains a duplicate key');
  }
}

/** @throws SvcError `too_large`, `invalid_request` */
export function encodeEncryptionKeysPayload(keys: readonly Omit<EncryptionKey, 'keyId'>[]): Uint8Array {
  checkKeys(keys.map(withId));
  return encodeCbor({ k: keys.map((key) => [key.publicKey, key.createdAt]) });
}

function withId(key: Omit<EncryptionKey, 'keyId'>): EncryptionKey {
  return { keyId: encryptionKeyId(key.publicKey), publicKey: key.publicKey, createdAt: key.createdAt };
}

function readKey(value: unknown): EncryptionKey | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [publicKey, createdAt]: unknown[] = value;
  return isBytes(publicKey, X25519_PUBLIC_KEY_BYTES) && isUint(createdAt) ? withId({ publicKey, createdAt }) : null;
}

/** Null if the payload is invalid. */
export function decodeEncryptionKeysPayload(bytes: Uint8Array): readonly EncryptionKey[] | null {
  const list = decodeMap(bytes, MAX_DATAGRAM_RECORD_BYTES)?.['k'];
  if (!Array.isArray(list) || list.length > MAX_ENCRYPTION_KEYS) return null;
  const keys = list.map(readKey);
  return keys.every((key) => key !== null) ? checked(keys, checkKeys) : null;
}
