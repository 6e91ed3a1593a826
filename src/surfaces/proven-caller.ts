/**
 * Verifies the caller of a program that is bound to an agent. Any local program can connect to the port, but only the
 * daemon can compute the proof. In the other direction the program proves that it is the bound service. See
 * docs/protocol-calls.md, "The proof of a call" and "A service that proves itself".
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CHALLENGE_BYTES, CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../foundation/service-proof.ts';

/** Longer than the daemon's idle timeout for services, milliseconds, so that the daemon closes first. */
export const KEEP_ALIVE_MS = 60_000;

/** `service_tcp` of a program that responds to challenges. @param address `host:port` */
export function provenService(address: string): string {
  return `http+proven://${address}`;
}

/** A challenge of the daemon; see `foundation/service-proof.ts`. */
const CHALLENGE = new RegExp(`^[0-9a-f]{${2 * CHALLENGE_BYTES}}$`);

/**
 * Responds to a challenge of the daemon.
 * @param port the port to which the agent is bound; default: that of the connection
 * @returns false for other requests, which the caller must serve
 */
export function answerChallenge(
  request: IncomingMessage,
  response: ServerResponse,
  key: Uint8Array,
  port: number = request.socket.localPort ?? 0,
): boolean {
  const challenge = one(request.headers[CHALLENGE_HEADER.toLowerCase()]);
  if (challenge === null) return false;
  if (CHALLENGE.test(challenge))
    response.writeHead(204, { [SERVICE_PROOF_HEADER]: serviceProof(key, challenge, port) }).end();
  else response.writeHead(400, { connection: 'close' }).end();
  return true;
}

/** Largest age of a proof, and largest clock difference, seconds. */
const MAX_PROOF_AGE_S = 60;

function one(value: string | string[] | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** The name of a client at a public address: `public`, and the label of its token. No AID has this form. */
function publicCaller({ headers }: Pick<IncomingMessage, 'headers'>): string | null {
  const [caller, label] = [one(headers['svc-caller']), one(headers['svc-client'])];
  return caller !== 'public' ? null : label === null ? caller : `${caller} ${label}`;
}

/**
 * The verified AID of the caller, or the name of a client at a public address; null without a proof.
 * @param key and AID of the called agent
 * @param nowS Unix seconds
 */
export function provenCaller(
  request: Pick<IncomingMessage, 'headers' | 'method' | 'url'>,
  { key, aid }: { readonly key: Uint8Array; readonly aid: string },
  nowS: number,
): string | null {
  const { headers, method = '', url = '' } = request;
  const caller = one(headers['svc-caller-aid']) ?? publicCaller(request);
  const [, at, mac] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(one(headers['svc-caller-proof']) ?? '') ?? [];
  if (caller === null || at === undefined || mac === undefined) return null;
  const text = ['v1', at, caller, aid, method, url].join('\n');
  const expected = createHmac('sha256', key).update(text).digest();
  const isFresh = Math.abs(nowS - Number(at)) <= MAX_PROOF_AGE_S;
  return isFresh && timingSafeEqual(Buffer.from(mac, 'hex'), expected) ? caller : null;
}
