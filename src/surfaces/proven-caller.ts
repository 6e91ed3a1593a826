/**
 * Who asks a program that is bound to an agent: the agent that the daemon names, where it proves that it named it. Any program
 * of this machine can speak to the port; none but the daemon can make the proof. The other way round the program proves
 * that it is the one which was bound. See docs/protocol-calls.md, "The proof of a call", "A service that proves itself".
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CHALLENGE_BYTES, CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../foundation/service-proof.ts';

/** Longer than the daemon keeps an idle connection to a service, milliseconds: the daemon hangs up, not the service. */
export const KEEP_ALIVE_MS = 60_000;

/** `service_tcp` of a program that answers challenges. @param address `host:port` */
export function provenService(address: string): string {
  return `http+proven://${address}`;
}

/** A challenge of the daemon, see `foundation/service-proof.ts`. */
const CHALLENGE = new RegExp(`^[0-9a-f]{${2 * CHALLENGE_BYTES}}$`);

/**
 * Proves to the daemon that this is the program which was bound, where a request asks for that.
 * @returns false where it is another request, which is to be served
 */
export function answerChallenge(request: IncomingMessage, response: ServerResponse, key: Uint8Array): boolean {
  const challenge = one(request.headers[CHALLENGE_HEADER.toLowerCase()]);
  if (challenge === null) return false;
  const { localPort = 0 } = request.socket;
  if (CHALLENGE.test(challenge))
    response.writeHead(204, { [SERVICE_PROOF_HEADER]: serviceProof(key, challenge, localPort) }).end();
  else response.writeHead(400, { connection: 'close' }).end();
  return true;
}

/** How old a proof may be, and how far in the future, seconds. */
const MAX_PROOF_AGE_S = 60;

function one(value: string | string[] | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/**
 * The AID of the caller; null where nothing proves it.
 * @param key and AID of the agent that is called
 * @param nowS Unix seconds
 */
export function provenCaller(
  { headers, method = '', url = '' }: Pick<IncomingMessage, 'headers' | 'method' | 'url'>,
  { key, aid }: { readonly key: Uint8Array; readonly aid: string },
  nowS: number,
): string | null {
  const caller = one(headers['svc-caller-aid']);
  const [, at, mac] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(one(headers['svc-caller-proof']) ?? '') ?? [];
  if (caller === null || at === undefined || mac === undefined) return null;
  const text = ['v1', at, caller, aid, method, url].join('\n');
  const expected = createHmac('sha256', key).update(text).digest();
  const isFresh = Math.abs(nowS - Number(at)) <= MAX_PROOF_AGE_S;
  return isFresh && timingSafeEqual(Buffer.from(mac, 'hex'), expected) ? caller : null;
}
