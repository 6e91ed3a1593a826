/**
 * Lets a client verify the daemon before it sends the API token: after a crash, any program on the machine could listen
 * on the daemon's port. Two keys work. One is in daemon.json, which only the daemon's user can read. The other is
 * derived from the token, for clients that cannot read the data directory. Any program can request a proof, so the
 * second key requires a token that cannot be guessed. See docs/decisions/0073-proven-api.md.
 */
import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import type { Clock } from './clock.ts';
import { canonicalIp, IP_SCOPE, ipScope } from './ip.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';
import { listen } from './stream-listeners.ts';

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

// A new connection to a local server that must prove its identity before it receives anything else.

/** Time for the server to prove itself after the dial, in milliseconds. */
const PROOF_TIMEOUT_MS = 10_000;
/** Maximum size of the response head, in bytes. */
const MAX_PROOF_ANSWER_BYTES = 1024;
const HEAD_END = '\r\n\r\n';

/** Error code if the server does not prove itself. */
export const UNPROVEN = 'SVCD_UNPROVEN';

/** The `reason` in the error details for the client. */
export const UNPROVEN_REASON = 'unproven';

/** The connection is closed without sending anything; the code distinguishes this from other failures. */
class UnprovenServer extends Error {
  readonly code = UNPROVEN;
}

export interface ProofRequirement {
  readonly challengeHeader: string;
  readonly proofHeader: string;
  /** The proofs that are accepted from the server on a connected socket. */
  readonly accepted: (challenge: string, socket: Socket) => readonly string[];
  readonly clock: Clock;
}

type Done = (error: Error | null, socket?: Socket) => void;

/** True if the response is only a head and contains an accepted proof. */
function isProof(answer: string, proofHeader: string, accepted: readonly string[]): boolean {
  if (!answer.startsWith('HTTP/1.1 204 ') || answer.indexOf(HEAD_END) + HEAD_END.length !== answer.length) return false;
  const [, proof = ''] = new RegExp(`\r\n${proofHeader}: (v1=[0-9a-f]{64})\r\n`, 'i').exec(answer) ?? [];
  const given = Buffer.from(proof);
  return accepted.some((wanted) => given.length === wanted.length && timingSafeEqual(given, Buffer.from(wanted)));
}

/** Requires a proof from the server on a connecting socket. Calls `done` once. */
export function requireProof(socket: Socket, wanted: ProofRequirement, done: Done): void {
  const { challengeHeader, proofHeader, accepted, clock } = wanted;
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  let answer = '';
  const end = (error: Error | null): void => {
    timer.cancel();
    stop();
    if (error === null) return done(null, socket);
    socket.destroy();
    done(error);
  };
  const over = (): void => end(new UnprovenServer('it closed the connection'));
  const ask = (): void => {
    // A listener that inspects each connection may have destroyed it.
    if (!socket.destroyed)
      socket.write(`OPTIONS * HTTP/1.1\r\nHost: localhost\r\n${challengeHeader}: ${challenge}${HEAD_END}`);
  };
  const take = (chunk: Buffer): void => {
    answer += chunk.toString('latin1');
    if (answer.length > MAX_PROOF_ANSWER_BYTES) return end(new UnprovenServer('its response is too long'));
    if (!answer.includes(HEAD_END)) return;
    const isProven = isProof(answer, proofHeader, accepted(challenge, socket));
    end(isProven ? null : new UnprovenServer('the proof is wrong'));
  };
  const timer = clock.after(PROOF_TIMEOUT_MS, () => end(new UnprovenServer('it does not answer')));
  const stop = listen(socket, { connect: ask, data: take, error: end, close: over, end: over });
}
