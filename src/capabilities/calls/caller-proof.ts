/**
 * How a service knows that a request came as a call: a header of its own that only this daemon can make. Where
 * tunnels lead to the service too, their bytes may name any caller, but none of them carries a proof.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import type { Aid } from '../../foundation/identity/aid.ts';

/** Name of the header. */
export const PROOF_HEADER = 'Svc-Caller-Proof';
const CALLER_KEY_BYTES = 32;

/** What a proof is about. */
export interface ProvenCall {
  readonly caller: Aid;
  readonly called: Aid;
  /** In upper case. */
  readonly method: string;
  /** Path and query, as the service receives them. */
  readonly target: string;
  /** Unix seconds. */
  readonly at: number;
}

/** The key of the proofs to one agent's service: HKDF-SHA-256 (RFC 5869) of the node's own key. */
export function callerKey(nodeSeed: Uint8Array, called: Aid): Uint8Array {
  return new Uint8Array(
    hkdfSync('sha256', nodeSeed, new Uint8Array(0), `svcd caller proof 1 ${called}`, CALLER_KEY_BYTES),
  );
}

/** Value of the header: `t=<Unix seconds>,v1=<HMAC-SHA-256 in hex>`. See docs/protocol-calls.md, "The proof of a call". */
export function callerProof(key: Uint8Array, { caller, called, method, target, at }: ProvenCall): string {
  const text = ['v1', at, caller, called, method, target].join('\n');
  return `t=${at},v1=${createHmac('sha256', key).update(text).digest('hex')}`;
}
