import { toHex } from '../../src/foundation/bytes.ts';
import { type Aid, nativeAid } from '../../src/foundation/identity/aid.ts';
import { type Delegation, encodeDelegation, issueDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import type { LocalIdentity } from '../../src/network/links/types.ts';

/** The instant at which `TestClock` starts, Unix seconds. */
const ISSUED_AT = Date.UTC(2026, 0, 1) / 1000;

/** An identity with all of its keys, and what `POST /agents` takes of it. */
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

/** A new identity, delegated when `TestClock` starts. */
export function newIdentity(issuedAt: number = ISSUED_AT): TestIdentity {
  return delegateAnew(KeyPair.generate(), issuedAt);
}

/** What a daemon that hosts an agent has of it. */
export function localIdentity({ aid, delegation, operational }: TestIdentity): LocalIdentity {
  return { aid, delegation, sign: (message) => operational.sign(message) };
}
