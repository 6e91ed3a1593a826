/**
 * Who asks a program that is bound to an agent: the agent that the daemon names, where it proves that it named it. Any program
 * of this machine can speak to the port; none but the daemon can make the proof. See docs/protocol-calls.md, "The proof
 * of a call".
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

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
