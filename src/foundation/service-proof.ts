/**
 * Proves that a program was bound as the service. After it exits, any program could listen on its port. Only the
 * daemon and the bound program have the key. See docs/protocol-calls.md, "A service that proves itself".
 */
import { createHmac } from 'node:crypto';

/** Header that the daemon sends on each new connection, and header of the response. */
export const CHALLENGE_HEADER = 'Svc-Service-Challenge';
export const SERVICE_PROOF_HEADER = 'Svc-Service-Proof';
/** Random bytes of a challenge, which is sent in hex. */
export const CHALLENGE_BYTES = 32;

/**
 * The value of the response: `v1=<HMAC-SHA-256 in hex>`.
 * @param key of the service: `svc inbound key`
 * @param port on which the service listens; a proof is valid for one port
 */
export function serviceProof(key: Uint8Array, challenge: string, port: number): string {
  const text = ['svcd service proof 1', challenge, port].join('\n');
  return `v1=${createHmac('sha256', key).update(text).digest('hex')}`;
}
