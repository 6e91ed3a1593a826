/** The server side of daemon-proof.ts. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  answerTokenStep,
  DAEMON_CHALLENGE_HEADER,
  DAEMON_PROOF_HEADER,
  daemonProof,
  isChallenge,
  NO_TOKEN,
  parseTokenStep,
  TOKEN_CHALLENGE_HEADER,
} from '../foundation/daemon-proof.ts';
import { SvcError } from '../foundation/errors.ts';
import { lazy } from '../foundation/lazy.ts';

/** Length of the secret from which the shares of the daemon follow, bytes. */
const SHARE_SECRET_BYTES = 32;

export interface ProverKeys {
  /** Key in daemon.json. */
  readonly key: Uint8Array;
  /** The present API token, empty for none. Absent for a server that clients find only through daemon.json. */
  readonly token?: () => string;
}

function headerIn({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name.toLowerCase()];
  return typeof value === 'string' ? value : null;
}

/** True for a request that only wants a proof. */
export function isProofRequest(request: IncomingMessage): boolean {
  if (request.method !== 'OPTIONS') return false;
  return headerIn(request, DAEMON_CHALLENGE_HEADER) !== null || headerIn(request, TOKEN_CHALLENGE_HEADER) !== null;
}

/** Counts a guess of the token. @throws SvcError `unauthorized`, `rate_limited` */
export type CheckGuess = (request: IncomingMessage, isRight: () => boolean) => void;

export class DaemonProver {
  readonly #keys: ProverKeys;
  /** Made on first use: most daemons never need it. */
  readonly #secret = lazy(() => randomBytes(SHARE_SECRET_BYTES));

  constructor(keys: ProverKeys) {
    this.#keys = keys;
  }

  /** Responds to a request for a proof. */
  answer(request: IncomingMessage, response: ServerResponse, check: CheckGuess): void {
    let status = 404;
    let proof: string | null = null;
    try {
      proof = this.#proof(request, check);
      if (proof !== null) status = 204;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      ({ status } = error);
    }
    if (proof === null) response.writeHead(status, { 'content-length': 0 });
    else response.writeHead(status, { [DAEMON_PROOF_HEADER]: proof });
    response.end();
  }

  /** @throws SvcError `unauthorized`, `rate_limited` */
  #proof(request: IncomingMessage, check: CheckGuess): string | null {
    const challenge = headerIn(request, DAEMON_CHALLENGE_HEADER);
    if (challenge !== null) return isChallenge(challenge) ? daemonProof(this.#keys.key, challenge) : null;
    const token = this.#keys.token?.();
    if (token === '') return NO_TOKEN;
    const step = parseTokenStep(headerIn(request, TOKEN_CHALLENGE_HEADER) ?? '');
    if (step === null || token === undefined) return null;
    return answerTokenStep(token, this.#secret(), step, (isRight) => check(request, isRight));
  }
}
