/** Shared by the builders of test vectors. Everything is derived from public phrases. */
import { createHash } from 'node:crypto';
import { toHex } from '../../src/foundation/bytes.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';

/** 32 bytes that follow from a phrase: never a real key. */
export function phraseBytes(phrase: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`svcd test vectors: ${phrase}`).digest());
}

export function phrasePair(phrase: string): KeyPair {
  return KeyPair.fromSeed(phraseBytes(phrase));
}

/** The bytes with one bit of one byte turned; a negative index counts from the end. */
export function turned(bytes: Uint8Array, index: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const at = index < 0 ? copy.length + index : index;
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

export function hexOf(...parts: readonly Uint8Array[]): string {
  return toHex(Buffer.concat(parts));
}

/** The time that the vectors are about: 2025-10-09T08:53:20Z. */
export const NOW = 1_760_000_000;
