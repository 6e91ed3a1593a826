/**
 * How a bound program proves that it is the one which was bound: a port that its program has left may be anybody's. Only
 * the daemon and the programs that it told have the key. See docs/protocol-calls.md, "A service that proves itself".
 */
import { createHmac } from 'node:crypto';

/** Names of headers: what the daemon sends on each new connection, and what it gets. */
export const CHALLENGE_HEADER = 'Svc-Service-Challenge';
export const SERVICE_PROOF_HEADER = 'Svc-Service-Proof';
/** Random bytes of a challenge, which is their hex. */
export const CHALLENGE_BYTES = 32;

/**
 * Value of the answer: `v1=<HMAC-SHA-256 in hex>`.
 * @param key of the proofs to the service: `svc inbound key`
 * @param port at which the service listens: a proof for one is none for another
 */
export function serviceProof(key: Uint8Array, challenge: string, port: number): string {
  const text = ['svcd service proof 1', challenge, port].join('\n');
  return `v1=${createHmac('sha256', key).update(text).digest('hex')}`;
}
