import { toHex } from '../../src/foundation/bytes.ts';
import { type Aid, nativeAid } from '../../src/foundation/identity/aid.ts';
import { type Delegation, encodeDelegation, issueDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';

/** The start time of `TestClock`, Unix seconds. */
const ISSUED_AT = Date.UTC(2026, 0, 1) / 1000;

/** An identity with all keys, and the body of `POST /agents` for it. */
export interface TestIdentity {
  readonly aid: Aid;
  readonly master: KeyPair;
  readonly operational: KeyPair;
  readonly delegation: Delegation;
  readonly credentials: { readonly operationalPrivateKeyHex: string; readonly delegationProofHex: string };
}

/** The same agent with a new operational key, delegated at `issuedAt` (Unix seconds). */
export function delegateAnew(
  master: KeyPair,
  issuedAt: number = ISSUED_AT,
  expiresAt = 0,
  operational: KeyPair = KeyPair.generate(),
): TestIdentity {
  const delegation = issueDelegation(master, operational.publicKey, issuedAt, expiresAt);
  return {
    aid: nativeAid(master.publicKey),
    master,
    operational,
    delegation,
    credentials: {
      operationalPrivateKeyHex: toHex(operational.seed),
      delegationProofHex: toHex(encodeDelegation(delegation)),
    },
  };
}

/** A new identity, delegated at the start of `TestClock`. */
export function newIdentity(issuedAt: number = ISSUED_AT): TestIdentity {
  return delegateAnew(KeyPair.generate(), issuedAt);
}

/** The part of an identity that its daemon has. */
export function localIdentity({ aid, delegation, operational }: TestIdentity): LocalIdentity {
  return { aid, delegation, sign: (message) => operational.sign(message) };
}
