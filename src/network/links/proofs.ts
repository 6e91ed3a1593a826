/**
 * Proofs that an agent belongs to one end of a connection: its delegation, and a signature by the operational key over
 * both ends and this connection. The signed bytes, and why a proof is useless elsewhere: docs/protocol-links.md, step
 * 12.
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
import type { ConnectionEnd } from '../peers/session.ts';
import { BinaryReader, ProtocolBreach, STATUS, u16 } from '../peers/wire.ts';
import type { LocalIdentity } from './types.ts';

const DOMAIN = new TextEncoder().encode('svcd/link-proof/v1\0');
/** Maximum size of an encoded proof, bytes. */
export const MAX_PROOF_BYTES = 2 + MAX_DELEGATION_BYTES + SIGNATURE_BYTES;

/** Reason for a delegation from the future. Only a wrong clock causes it. */
export const NOT_YET_VALID = 'not_valid_yet';
/** The owner considers the delegation valid, so the message names both clocks. */
const NOT_VALID_NOW =
  'By the clock of this machine, the delegation of the other agent is not valid now. This machine\'s clock is wrong, or the other node\'s: "svc doctor" compares this one with others.';

/** The role of an agent. A proof for one role is invalid for the other. */
export type ProofRole = 'caller' | 'called';
const ROLE_BYTE: Readonly<Record<ProofRole, number>> = { caller: 1, called: 2 };

/** An encoded proof. */
export interface Proof {
  readonly delegation: Uint8Array;
  readonly signature: Uint8Array;
}

/** Validity of a verified delegation, Unix seconds. */
export interface ProvenWindow {
  readonly issuedAt: number;
  /** 0 for unlimited. */
  readonly expiresAt: number;
}

/**
 * The bytes that the operational key signs. The prover's end is first, so a node cannot return a received proof to its
 * sender.
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

/** The context of a verification. */
interface ProofContext {
  readonly here: ConnectionEnd;
  readonly there: ConnectionEnd;
  /** The earliest valid `issuedAt`, Unix seconds. Older delegations were replaced. */
  readonly oldest: number;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Verifies the proof of an agent at the other end.
 * @throws SvcError `bad_delegation` if it was replaced, `clock_wrong` if it is not valid now by this node's clock,
 *   `ProtocolBreach` if it is forged
 */
export async function verifyProof(
  role: ProofRole,
  aid: Aid,
  proof: Proof,
  { here, there, oldest, now }: ProofContext,
  verifier: DelegationVerifier,
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
    // Its validity was checked, so the agent never signed it.
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

/** True within the validity of a delegation that is not older than `oldest`. Unix seconds. */
export function isCurrent(window: ProvenWindow, oldest: number, now: number): boolean {
  return isWindowOpen(window, now) && window.issuedAt >= oldest;
}

/** True if both delegations have the same bytes. */
export function sameDelegation(a: Delegation, b: Delegation): boolean {
  return a === b || Buffer.compare(encodeDelegation(a), encodeDelegation(b)) === 0;
}

/** The bytes of a proof: the delegation's length in two bytes, the delegation, the signature. */
export function encodeProof(proof: Proof): Uint8Array {
  return Buffer.concat([u16(proof.delegation.length), proof.delegation, proof.signature]);
}

/** @throws RangeError if the frame has no proof */
export function takeProof(frame: BinaryReader): Proof {
  const length = frame.u16();
  if (length > MAX_DELEGATION_BYTES) throw new RangeError('the delegation is too long');
  return { delegation: frame.bytes(length), signature: frame.bytes(SIGNATURE_BYTES) };
}

/** Decodes a frame with one proof. Null if it is malformed. */
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
