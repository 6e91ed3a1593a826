/**
 * Lets a client verify the daemon before it sends the API token: after a crash, any program on the machine could listen
 * on the daemon's port. Two keys work. One is in daemon.json, which only the daemon's user can read. The other is
 * derived from the token, for clients that cannot read the data directory. Any program can request a proof, so the
 * second key requires a token that cannot be guessed. See docs/decisions/0073-proven-api.md.
 */
import { createHmac, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';

/** Headers of an `OPTIONS *` request: a challenge for the key in daemon.json, and one for the key of the token. */
export const DAEMON_CHALLENGE_HEADER = 'Svc-Daemon-Challenge';
export const TOKEN_CHALLENGE_HEADER = 'Svc-Token-Challenge';
/** Header of the response: `v1=<HMAC-SHA-256 in hex>`. */
export const DAEMON_PROOF_HEADER = 'Svc-Daemon-Proof';

/**
 * Minimum length of a random API token that cannot be guessed, in characters: 22 base64url characters hold 128 bits.
 */
export const UNGUESSABLE_TOKEN_CHARS = 22;

const CHALLENGE = new RegExp(`^[0-9a-f]{${2 * CHALLENGE_BYTES}}$`);
const TOKEN_KEY_BYTES = 32;
/** Makes each guess cost tens of milliseconds, in case a long token is weak. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 1 } as const;
const TOKEN_SALT = 'svcd token proof 1';

/** True if a token is long enough that a proof does not help an attacker guess it. */
export function isUnguessable(token: string): boolean {
  return token.length >= UNGUESSABLE_TOKEN_CHARS;
}

/** True if the value of a challenge header is valid. */
export function isChallenge(value: string): boolean {
  return CHALLENGE.test(value);
}

/** Derives the proof key from a token. */
export async function tokenProofKey(token: string): Promise<Uint8Array> {
  return await promisify<string, string, number, typeof SCRYPT, Buffer>(scrypt)(
    token,
    TOKEN_SALT,
    TOKEN_KEY_BYTES,
    SCRYPT,
  );
}

/**
 * The destination address that both ends of a connection see: a loopback address. All others become `forwarded`,
 * because with containers and port forwarding the server sees another address than the client dialed.
 */
function proofAddress(address: string | undefined): string {
  const ip = canonicalIp(address ?? '');
  return ip !== null && ipScope(ip) === IP_SCOPE.loopback ? ip : FORWARDED;
}

const FORWARDED = 'forwarded';

function proof(key: Uint8Array, challenge: string, place: string, port: number): string {
  const text = ['svcd daemon proof 1', challenge, place, port].join('\n');
  return `v1=${createHmac('sha256', key).update(text).digest('hex')}`;
}

/**
 * The response to a challenge. A proof is valid for one address only, so no program can forward the proof of a daemon
 * that listens elsewhere.
 * @param address local address of the server's socket
 * @param port on which the server listens
 */
export function daemonProof(key: Uint8Array, challenge: string, address: string | undefined, port: number): string {
  return proof(key, challenge, proofAddress(address), port);
}

/** The proofs that a client accepts. @param address that the client is connected to */
export function acceptedProofs(
  key: Uint8Array,
  challenge: string,
  address: string | undefined,
  port: number,
): string[] {
  return [...new Set([proofAddress(address), FORWARDED])].map((place) => proof(key, challenge, place, port));
}
