/** A new connection to a local server that must prove its identity before it receives anything else. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';
import { listen } from './stream-listeners.ts';

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
