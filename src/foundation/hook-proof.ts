/**
 * A hook runs a program as the user of the daemon. Other users and sandboxed programs of this machine can reach the API,
 * so whoever adds a hook must prove that it can read daemon.json, which only that user can.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a proof covers. */
export interface ProvenHook {
  readonly aid: string;
  readonly kind: string;
  readonly command: readonly string[];
  readonly shell: boolean;
  readonly folder: string;
}

/** HMAC-SHA-256 in hex. @param key `proof_key` of daemon.json */
export function hookProof(key: Uint8Array, { aid, kind, command, shell, folder }: ProvenHook): string {
  const text = JSON.stringify(['svcd hook 1', aid, kind, command, shell, folder]);
  return createHmac('sha256', key).update(text).digest('hex');
}

export function isHookProof(key: Uint8Array, hook: ProvenHook, proof: string): boolean {
  const wanted = Buffer.from(hookProof(key, hook));
  const given = Buffer.from(proof);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
