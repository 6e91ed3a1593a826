/**
 * Proofs that an agent stands behind one end of a connection: its delegation, and a signature by
 * the operational key over this end, the other end and this very connection. What is signed, and
 * why a proof is worth nothing elsewhere: docs/protocol-links.md, step 12.
 */
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import {
  type Delegation,
  decodeDelegation,
  encodeDelegation,
  MAX_DELEGATION_BYTES,
} from '../../foundation/identity/delegation.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import { SIGNATURE_BYTES } from '../../foundation/identity/ed25519.ts';
import { isWindowOpen } from '../../foundation/identity/grant.ts';
import { verifySignatureAsync } from '../../foundation/identity/keys.ts';
import type { LocalIdentity } from './types.ts';
import { BinaryReader, ProtocolBreach, STATUS, u16 } from './wire.ts';

const DOMAIN = new TextEncoder().encode('svcd/link-proof/v1\0');
/** Largest encoded proof, bytes. */
export const MAX_PROOF_BYTES = 2 + MAX_DELEGATION_BYTES + SIGNATURE_BYTES;

/** Why a delegation does not count by our clock: nothing but a wrong clock makes it too new. */
export const NOT_YET_VALID = 'not_valid_yet';
/** A delegation that its owner holds for valid: what it says of two clocks is shown where it is refused. */
const NOT_VALID_NOW =
  'By the clock of this machine, the delegation of the other agent is not valid now. This machine\'s clock is wrong, or the other node\'s: "svc doctor" compares this one with others.';

/** Whether an agent opens a stream or is asked for; a proof of one is none of the other. */
export type ProofRole = 'caller' | 'called';
const ROLE_BYTE: Readonly<Record<ProofRole, number>> = { caller: 1, called: 2 };

/** One end of a connection: the node's public key, and the nonce that it chose for this connection. */
export interface ConnectionEnd {
  readonly nodeKey: Uint8Array;
  readonly nonce: Uint8Array;
}

/** A proof as it travels. */
export interface Proof {
  readonly delegation: Uint8Array;
  readonly signature: Uint8Array;
}

/** When a verified delegation counts, Unix seconds. */
export interface ProvenWindow {
  readonly issuedAt: number;
  /** 0 means never. */
  readonly expiresAt: number;
}

/**
 * What the operational key signs. The prover's end comes first, so a node cannot hand a proof that
 * it was shown back to who made it.
 */
export function proofInput(role: ProofRole, aid: Aid, prover: ConnectionEnd, verifier: ConnectionEnd): Uint8Array {
  return Buffer.concat([
    DOMAIN,
    Uint8Array.of(ROLE_BYTE[role]),
    prover.nodeKey,
    verifier.nodeKey,
    prover.nonce,
    verifier.nonce,
    aidToBytes(aid),
  ]);
}

/** Proves an agent of this node to the other end of a connection. */
export function makeProof(role: ProofRole, identity: LocalIdentity, here: ConnectionEnd, there: ConnectionEnd): Proof {
  return {
    delegation: encodeDelegation(identity.delegation),
    signature: identity.sign(proofInput(role, identity.aid, here, there)),
  };
}

/** What a proof is verified against. */
interface ProofContext {
  readonly here: ConnectionEnd;
  readonly there: ConnectionEnd;
  /** The earliest `issuedAt` that still counts, Unix seconds: an older delegation has been replaced. */
  readonly oldest: number;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Verifies the proof of an agent at the other end.
 * @throws SvcError `bad_delegation` if it was replaced, `clock_wrong` if it is not valid now by our clock, `ProtocolBreach` if it is forged
 */
export async function verifyProof(
  role: ProofRole,
  aid: Aid,
  proof: Proof,
  { here, there, oldest, now }: ProofContext,
  verifier: Pick<DelegationVerifier, 'verifyAsync'>,
): Promise<ProvenWindow> {
  // protocol-links.md, step 12
  const delegation = readDelegation(proof.delegation);
  if (delegation.agent !== aid) throw forged('The proof is for another agent.');
  if (delegation.issuedAt < oldest)
    throw new SvcError('bad_delegation', { message: "The agent's delegation was replaced by a newer one." });
  if (!isCurrent(delegation, oldest, now)) {
    const reason = now < delegation.issuedAt ? NOT_YET_VALID : 'expired';
    throw new SvcError('clock_wrong', { message: NOT_VALID_NOW, details: { reason } });
  }
  const input = proofInput(role, aid, there, here);
  if (!(await verifySignatureAsync(delegation.operationalKey, input, proof.signature)))
    throw forged('The operational key did not sign for this connection.');
  try {
    await verifier.verifyAsync(delegation, now);
  } catch (cause) {
    // Its window is right, so what fails here was never signed by the agent.
    throw forged("The agent's delegation does not verify.", cause);
  }
  return { issuedAt: delegation.issuedAt, expiresAt: delegation.expiresAt };
}

function readDelegation(bytes: Uint8Array): Delegation {
  try {
    return decodeDelegation(bytes);
  } catch (cause) {
    throw forged("The agent's delegation is malformed.", cause);
  }
}

function forged(message: string, cause?: unknown): ProtocolBreach {
  return new ProtocolBreach(message, { answer: STATUS.badProof, cause });
}

/** True where a delegation is within its window, and not older than `oldest`. Unix seconds. */
export function isCurrent(window: ProvenWindow, oldest: number, now: number): boolean {
  return isWindowOpen(window, now) && window.issuedAt >= oldest;
}

/** True where both are the same delegation, or one as good. */
export function sameDelegation(a: Delegation, b: Delegation): boolean {
  return a === b || Buffer.compare(encodeDelegation(a), encodeDelegation(b)) === 0;
}

/** The proof's bytes: the delegation's length in two bytes, the delegation, the signature. */
export function encodeProof(proof: Proof): Uint8Array {
  return Buffer.concat([u16(proof.delegation.length), proof.delegation, proof.signature]);
}

/** @throws RangeError where the frame does not hold a proof */
export function takeProof(frame: BinaryReader): Proof {
  const length = frame.u16();
  if (length > MAX_DELEGATION_BYTES) throw new RangeError('the delegation is too long');
  return { delegation: frame.bytes(length), signature: frame.bytes(SIGNATURE_BYTES) };
}

/** A frame that is one proof; null where it is not. */
export function decodeProof(bytes: Uint8Array): Proof | null {
  try {
    const frame = new BinaryReader(bytes);
    const proof = takeProof(frame);
    frame.end();
    return proof;
  } catch {
    return null;
  }
}
