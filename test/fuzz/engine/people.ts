/** Agents that are the same in every run, so that a kept input means the same for ever. */
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { delegateAnew, type TestIdentity } from '../../support/identities.ts';

function keyOf(number: number): KeyPair {
  return KeyPair.fromSeed(new Uint8Array(32).fill(number));
}

/** The agent of a number, 1 to 127. */
export function person(number: number): TestIdentity {
  return delegateAnew(keyOf(number), undefined, 0, keyOf(number + 128));
}
