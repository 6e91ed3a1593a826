/**
 * The identities that the records of notes are signed by: each is made for one record, and tells nobody who sent it. The
 * next one is made ahead, since that takes a quarter of the time of sealing a note.
 */
import { type Delegation, selfDelegation } from '../../foundation/identity/delegation.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';

interface PassingIdentity {
  readonly key: KeyPair;
  readonly delegation: Delegation;
}

function made(): PassingIdentity {
  const key = KeyPair.generate();
  return { key, delegation: selfDelegation(key) };
}

export class PassingIdentities {
  #next: PassingIdentity | null = null;

  /** One that nobody has had before. */
  take(): PassingIdentity {
    const taken = this.#next ?? made();
    this.#next = null;
    return taken;
  }

  /** Makes the next one where there is none. */
  prepare(): void {
    this.#next ??= made();
  }
}
