/** The server side of daemon-proof.ts. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  DAEMON_CHALLENGE_HEADER,
  DAEMON_PROOF_HEADER,
  daemonProof,
  isChallenge,
  isUnguessable,
  TOKEN_CHALLENGE_HEADER,
  tokenProofKey,
} from '../foundation/daemon-proof.ts';

export interface ProverKeys {
  /** Key in daemon.json. */
  readonly key: Uint8Array;
  /** The present API token. Empty for none. */
  readonly token: () => string;
}

/** True for a request that only wants a proof. */
export function isProofRequest({ method, url, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && url === '*' && challengeIn(headers) !== null;
}

function challengeIn(headers: IncomingMessage['headers']): { readonly text: string; readonly ofToken: boolean } | null {
  for (const ofToken of [false, true]) {
    const text = headers[(ofToken ? TOKEN_CHALLENGE_HEADER : DAEMON_CHALLENGE_HEADER).toLowerCase()];
    if (typeof text === 'string' && isChallenge(text)) return { text, ofToken };
  }
  return null;
}

export class DaemonProver {
  readonly #keys: ProverKeys;
  #derived: { readonly token: string; readonly key: Promise<Uint8Array> } | null = null;

  constructor(keys: ProverKeys) {
    this.#keys = keys;
  }

  /** Responds to a request for a proof. @param port the port of the server */
  async answer(request: IncomingMessage, response: ServerResponse, port: number): Promise<void> {
    const challenge = challengeIn(request.headers);
    const key = challenge?.ofToken === true ? await this.#tokenKey() : this.#keys.key;
    if (challenge === null || key === null) response.writeHead(404, { 'content-length': 0 });
    else {
      const proof = daemonProof(key, challenge.text, request.socket.localAddress, port);
      response.writeHead(204, { [DAEMON_PROOF_HEADER]: proof });
    }
    response.end();
  }

  /** Null without a token, and for a token that a proof would help to guess. */
  async #tokenKey(): Promise<Uint8Array | null> {
    const token = this.#keys.token();
    if (!isUnguessable(token)) return null;
    if (this.#derived?.token !== token) this.#derived = { token, key: tokenProofKey(token) };
    return await this.#derived.key;
  }
}
