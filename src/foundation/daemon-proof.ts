/**
 * How the API proves which daemon it is of, before a client sends it the API token: any program of the machine can listen
 * at the port of a daemon that has crashed. Two keys do: the one in daemon.json, which only the user of the daemon can
 * read, and one that is derived from the token, for clients that cannot read the data directory. Since any program may
 * ask for a proof, the second is for tokens that cannot be guessed. See docs/decisions/0073-proven-api.md.
 */
import { createHmac, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';

/** Headers of a request `OPTIONS *`: a challenge for the key of daemon.json, and one for the key of the token. */
export const DAEMON_CHALLENGE_HEADER = 'Svc-Daemon-Challenge';
export const TOKEN_CHALLENGE_HEADER = 'Svc-Token-Challenge';
/** Header of the answer: `v1=<HMAC-SHA-256 in hex>`. */
export const DAEMON_PROOF_HEADER = 'Svc-Daemon-Proof';

/** Shortest API token that cannot be guessed if it is random, characters: 22 of base64url hold 128 bits. */
export const UNGUESSABLE_TOKEN_CHARS = 22;

const CHALLENGE = new RegExp(`^[0-9a-f]{${2 * CHALLENGE_BYTES}}$`);
const TOKEN_KEY_BYTES = 32;
/** Tens of milliseconds for a guess, should a long token be a weak one. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 1 } as const;
const TOKEN_SALT = 'svcd token proof 1';

/** True if a token is long enough that proofs and guesses give nothing away. */
export function isUnguessable(token: string): boolean {
  return token.length >= UNGUESSABLE_TOKEN_CHARS;
}

/** True for the value of a challenge header. */
export function isChallenge(value: string): boolean {
  return CHALLENGE.test(value);
}

/** The key of proofs that follows from a token. */
export async function tokenProofKey(token: string): Promise<Uint8Array> {
  return await promisify<string, string, number, typeof SCRYPT, Buffer>(scrypt)(
    token,
    TOKEN_SALT,
    TOKEN_KEY_BYTES,
    SCRYPT,
  );
}

/**
 * Where a connection ends, as both ends of it know: an address of loopback. Others are `forwarded`, because containers
 * and port forwarders give the server another address than the client dialled.
 */
function placeOf(address: string | undefined): string {
  const ip = canonicalIp(address ?? '');
  return ip !== null && ipScope(ip) === IP_SCOPE.loopback ? ip : FORWARDED;
}

const FORWARDED = 'forwarded';

function proof(key: Uint8Array, challenge: string, place: string, port: number): string {
  const text = ['svcd daemon proof 1', challenge, place, port].join('\n');
  return `v1=${createHmac('sha256', key).update(text).digest('hex')}`;
}

/**
 * The answer to a challenge: a proof for one address is none for another, so no program can pass on that of a daemon
 * that listens elsewhere.
 * @param address of the server's end of the connection
 * @param port at which it listens
 */
export function daemonProof(key: Uint8Array, challenge: string, address: string | undefined, port: number): string {
  return proof(key, challenge, placeOf(address), port);
}

/** The proofs that a client accepts. @param address that it is connected to */
export function acceptedProofs(
  key: Uint8Array,
  challenge: string,
  address: string | undefined,
  port: number,
): string[] {
  return [...new Set([placeOf(address), FORWARDED])].map((place) => proof(key, challenge, place, port));
}
