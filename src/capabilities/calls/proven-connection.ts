/** A new connection to a service that has to prove itself before it hears of any call. */
import type { Clock } from '../../foundation/clock.ts';
import type { ProofRequirement } from '../../foundation/proven-connection.ts';
import { CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../../foundation/service-proof.ts';

export interface ProofExpected {
  readonly key: Uint8Array;
  /** Where it was dialled. */
  readonly port: number;
  readonly clock: Clock;
}

/** What a service has to prove. */
export function proofOfService({ key, port, clock }: ProofExpected): ProofRequirement {
  return {
    challengeHeader: CHALLENGE_HEADER,
    proofHeader: SERVICE_PROOF_HEADER,
    accepted: (challenge) => [serviceProof(key, challenge, port)],
    clock,
  };
}
