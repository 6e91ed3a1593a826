/**
 * The public part of a note record: its mailbox, the ID of the key that opens it, and a commitment to its removal
 * token. Format: docs/protocol-notes.md, step 4.
 */
import { createHash } from 'node:crypto';
import { KEY_BYTES } from './keys.ts';
import { KEY_ID_BYTES, X25519_PUBLIC_KEY_BYTES } from './payloads.ts';

const VERSION = 1;
const REMOVAL_DOMAIN = 'svcd/note-removal/v1\0';
/** Length of the commitment to a removal token, in bytes. */
export const REMOVAL_HASH_BYTES = 16;
const HEADER_BYTES = KEY_BYTES + 1 + REMOVAL_HASH_BYTES + KEY_ID_BYTES;
/** Length of an AES-256-GCM tag. */
const AEAD_TAG_BYTES = 16;

/** The decoded payload of a note record. */
export interface NotePayload {
  readonly mailbox: Uint8Array;
  readonly removalHash: Uint8Array;
  /** ID of the recipient's encryption key. */
  readonly keyId: Uint8Array;
  /** The HPKE encapsulated key. */
  readonly encapsulated: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** The commitment to a removal token. */
export function removalHash(token: Uint8Array): Uint8Array {
  const digest = createHash('sha256').update(REMOVAL_DOMAIN).update(token).digest();
  return new Uint8Array(digest.subarray(0, REMOVAL_HASH_BYTES));
}

/** The header before the sealed part, which is authenticated with it. */
export function noteHeader(payload: Pick<NotePayload, 'mailbox' | 'removalHash' | 'keyId'>): Uint8Array {
  return Buffer.concat([payload.mailbox, Uint8Array.of(VERSION), payload.removalHash, payload.keyId]);
}

export function encodeNotePayload(payload: NotePayload): Uint8Array {
  return Buffer.concat([noteHeader(payload), payload.encapsulated, payload.ciphertext]);
}

/** Null if the payload is invalid. */
export function decodeNotePayload(bytes: Uint8Array): NotePayload | null {
  const sealedAt = HEADER_BYTES + X25519_PUBLIC_KEY_BYTES;
  if (bytes.length <= sealedAt + AEAD_TAG_BYTES || bytes[KEY_BYTES] !== VERSION) return null;
  const hashAt = KEY_BYTES + 1;
  const keyIdAt = hashAt + REMOVAL_HASH_BYTES;
  return {
    mailbox: bytes.slice(0, KEY_BYTES),
    removalHash: bytes.slice(hashAt, keyIdAt),
    keyId: bytes.slice(keyIdAt, HEADER_BYTES),
    encapsulated: bytes.slice(HEADER_BYTES, sealedAt),
    ciphertext: bytes.slice(sealedAt),
  };
}
