/**
 * Proof for a service that a request is a call: a header that only this daemon can create. If tunnels lead to the same
 * service, a tunneled request can claim any caller, but it cannot carry a valid proof.
 */
import { createHmac, createSecretKey, hkdfSync } from 'node:crypto';
import type { Aid } from '../../foundation/identity/aid.ts';
import { memoizeByObject } from '../../foundation/lazy.ts';

/** Name of the header. */
export const PROOF_HEADER = 'Svc-Caller-Proof';
const CALLER_KEY_BYTES = 32;

/** The fields that a proof covers. */
export interface ProvenCall {
  /** An AID, or another name of a caller. */
  readonly caller: string;
  readonly called: Aid;
  /** In upper case. */
  readonly method: string;
  /** Path and query, as the service receives them. */
  readonly target: string;
  /** Unix seconds. */
  readonly at: number;
}

/** Key of the proofs for one agent's service: HKDF-SHA-256 (RFC 5869) of the node key. */
export function callerKey(nodeSeed: Uint8Array, called: Aid): Uint8Array {
  return new Uint8Array(
    hkdfSync('sha256', nodeSeed, new Uint8Array(0), `svcd caller proof 1 ${called}`, CALLER_KEY_BYTES),
  );
}

/** A key for the HMAC of each call, which costs more to create than to use. */
const keyObject = memoizeByObject((key: Uint8Array) => createSecretKey(key));

/** Header value: `t=<Unix seconds>,v1=<HMAC-SHA-256 in hex>`. See docs/protocol-calls.md, "The proof of a call". */
export function callerProof(key: Uint8Array, { caller, called, method, target, at }: ProvenCall): string {
  const text = ['v1', at, caller, called, method, target].join('\n');
  return `t=${at},v1=${createHmac('sha256', keyObject(key)).update(text).digest('hex')}`;
}
