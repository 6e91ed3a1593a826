/**
 * The keys of the records of notes, each made for one record: the identity that signs it, which tells nobody who sent it,
 * and the key that seals what is inside. The next ones are made ahead, since that takes half of the time of sealing a note.
 */
import { type Delegation, selfDelegation } from '../../foundation/identity/delegation.ts';
import { KeyPair } from '../../foundation/identity/keys.ts';
import { type BoxKey, newBoxKey } from '../../foundation/keys/sealed-box.ts';

interface PassingIdentity {
  readonly key: KeyPair;
  readonly delegation: Delegation;
  readonly box: BoxKey;
}

function made(): PassingIdentity {
  const key = KeyPair.generate();
  return { key, delegation: selfDelegation(key), box: newBoxKey() };
}

export class EphemeralIdentities {
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
