/** Agents for tests, with valid AIDs that are the same in every run. */
import { type Aid, nativeAid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';

/** Key pair number `n`. */
export function testKeys(n: number): KeyPair {
  const seed = new Uint8Array(32);
  new DataView(seed.buffer).setUint32(28, n);
  return KeyPair.fromSeed(seed);
}

/** AID number `n`. */
export function testAid(n: number): Aid {
  return nativeAid(testKeys(n).publicKey);
}
