/** Who calls a served program: what the daemon says of a request, and that it was the daemon who said it. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Seconds by which the clock of a proof may differ from ours. */
const MAX_AGE_S = 60;
const PROOF = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/;

function only(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : '';
}

/**
 * The AID of the agent that calls, as the daemon has proven it; null where a request did not come as a call: another
 * program of this machine may send anything to the port. See docs/protocol-calls.md, "The proof of a call".
 * @param keyHex of `GET /agents/{aid}/caller-key`
 * @param nowS Unix seconds
 */
export function callerOf(
  { headers, method, url }: Pick<IncomingMessage, 'headers' | 'method' | 'url'>,
  keyHex: string,
  nowS: number,
): string | null {
  const caller = only(headers['svc-caller-aid']);
  const [, t = '', v1 = ''] = PROOF.exec(only(headers['svc-caller-proof'])) ?? [];
  const said = ['v1', t, caller, only(headers['svc-local-aid']), method, url].join('\n');
  const mac = createHmac('sha256', Buffer.from(keyHex, 'hex')).update(said).digest();
  const given = Buffer.from(v1, 'hex');
  const isRight = given.length === mac.length && timingSafeEqual(given, mac);
  return isRight && Math.abs(nowS - Number(t)) <= MAX_AGE_S ? caller : null;
}
