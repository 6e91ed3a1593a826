/** A new connection to a service that must prove its identity before it receives a call. */
import type { Clock } from '../../foundation/clock.ts';
import type { ProofRequirement } from '../../foundation/proven-connection.ts';
import { CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../../foundation/service-proof.ts';

export interface ProofExpected {
  readonly key: Uint8Array;
  /** The port that was dialed. */
  readonly port: number;
  readonly clock: Clock;
}

/** The proof that a service must give. */
export function requiredProof({ key, port, clock }: ProofExpected): ProofRequirement {
  return {
    challengeHeader: CHALLENGE_HEADER,
    proofHeader: SERVICE_PROOF_HEADER,
    accepted: (challenge) => [serviceProof(key, challenge, port)],
    clock,
  };
}
