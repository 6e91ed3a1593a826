/** A new connection to a local server that has to prove itself before it receives anything else. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';
import { listen } from './stream-listeners.ts';

/** How long a server may take to prove itself once it was dialled, milliseconds. */
const PROOF_TIMEOUT_MS = 10_000;
/** Longest head of its answer. */
const MAX_PROOF_ANSWER_BYTES = 1024;
const HEAD_END = '\r\n\r\n';

/** The code of what a server that does not prove itself fails with. */
export const UNPROVEN = 'SVCD_UNPROVEN';

/** The `reason` in the details of the error of a client that is told so. */
export const UNPROVEN_REASON = 'unproven';

/** Why a connection carries nothing; its code is what tells it from other failures. */
class UnprovenServer extends Error {
  readonly code = UNPROVEN;
}

export interface ProofRequirement {
  /** Header that carries the challenge. */
  readonly challengeHeader: string;
  /** Header that carries the proof. */
  readonly proofHeader: string;
  /** The proofs that are accepted of the server at the other end of a connected socket. */
  readonly accepted: (challenge: string, socket: Socket) => readonly string[];
  readonly clock: Clock;
}

type Done = (error: Error | null, socket?: Socket) => void;

/** True if the head of an answer, and nothing else, came in time and holds the proof. */
function isProof(answer: string, proofHeader: string, accepted: readonly string[]): boolean {
  if (!answer.startsWith('HTTP/1.1 204 ') || answer.indexOf(HEAD_END) + HEAD_END.length !== answer.length) return false;
  const [, proof = ''] = new RegExp(`\r\n${proofHeader}: (v1=[0-9a-f]{64})\r\n`, 'i').exec(answer) ?? [];
  const given = Buffer.from(proof);
  return accepted.some((wanted) => given.length === wanted.length && timingSafeEqual(given, Buffer.from(wanted)));
}

/** Has the server at the other end of a socket that is being connected prove itself; `done` is called once. */
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
    // Who sees each connection may have cut it.
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
