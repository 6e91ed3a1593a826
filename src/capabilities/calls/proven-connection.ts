/** A new connection to a service that has to prove itself before it hears of any call. */

import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock } from '../../foundation/clock.ts';
import {
  CHALLENGE_BYTES,
  CHALLENGE_HEADER,
  SERVICE_PROOF_HEADER,
  serviceProof,
} from '../../foundation/service-proof.ts';
import { listen } from '../../foundation/stream-listeners.ts';

/** How long a service may take to prove itself once it was dialled, milliseconds. */
const PROOF_TIMEOUT_MS = 10_000;
/** Longest head of its answer. */
const MAX_PROOF_ANSWER_BYTES = 1024;
const HEAD_END = '\r\n\r\n';

/** Why a connection carries no call; its code is what `reasonOf` reads. */
class UnprovenService extends Error {
  readonly code = UNPROVEN;
}

/** The code of what a service that does not prove itself fails with. */
export const UNPROVEN = 'SVCD_UNPROVEN';

export interface ProofExpected {
  readonly key: Uint8Array;
  /** Where it was dialled. */
  readonly port: number;
  readonly clock: Clock;
}

type Done = (error: Error | null, socket?: Socket) => void;

/** Whether the head of an answer, and nothing else, came in time and holds the proof. */
function holds(answer: string, expected: string): boolean {
  if (!answer.startsWith('HTTP/1.1 204 ') || answer.indexOf(HEAD_END) + HEAD_END.length !== answer.length) return false;
  const [, proof = ''] = new RegExp(`\r\n${SERVICE_PROOF_HEADER}: (v1=[0-9a-f]{64})\r\n`, 'i').exec(answer) ?? [];
  const [given, wanted] = [Buffer.from(proof), Buffer.from(expected)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** Has a socket that is being connected prove whose it is; `done` gets it then, or why not, once. */
export function askForProof(socket: Socket, { key, port, clock }: ProofExpected, done: Done): void {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  let answer = '';
  const end = (error: Error | null): void => {
    timer.cancel();
    stop();
    if (error === null) return done(null, socket);
    socket.destroy();
    done(error);
  };
  const over = (): void => end(new UnprovenService('it hung up'));
  const ask = (): void => {
    // Who sees each connection may have cut it.
    if (!socket.destroyed)
      socket.write(`OPTIONS * HTTP/1.1\r\nHost: localhost\r\n${CHALLENGE_HEADER}: ${challenge}${HEAD_END}`);
  };
  const take = (chunk: Buffer): void => {
    answer += chunk.toString('latin1');
    if (answer.length > MAX_PROOF_ANSWER_BYTES) return end(new UnprovenService('it says too much'));
    if (!answer.includes(HEAD_END)) return;
    end(holds(answer, serviceProof(key, challenge, port)) ? null : new UnprovenService('the proof is wrong'));
  };
  const timer = clock.after(PROOF_TIMEOUT_MS, () => end(new UnprovenService('it does not answer')));
  const stop = listen(socket, { connect: ask, data: take, error: end, close: over, end: over });
}
