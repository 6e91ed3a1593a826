/** Agents with fixed keys, so that stored inputs keep their meaning. */
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { delegateAnew, type TestIdentity } from '../../support/identities.ts';

function keyOf(number: number): KeyPair {
  return KeyPair.fromSeed(new Uint8Array(32).fill(number));
}

/** Returns agent `number`, 1 to 127. */
export function testAgent(number: number): TestIdentity {
  return delegateAnew(keyOf(number), undefined, 0, keyOf(number + 128));
}
