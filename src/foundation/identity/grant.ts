/** What a delegation proof says, before anyone has signed it: which key may act for which agent, and when. */
import { isUint } from '../cbor.ts';
import { CLOCK_SKEW_S, MAX_UNIX_S } from '../domain/time.ts';
import { SvcError } from '../errors.ts';
import type { Aid } from './aid.ts';
import { isUsablePublicKey } from './ed25519.ts';

/** The only scope: network operations. */
export const SCOPE_NETWORK = 1;

export interface Grant {
  readonly agent: Aid;
  /** 32-byte Ed25519 public key that may act for the agent. */
  readonly operationalKey: Uint8Array;
  readonly scope: number;
  /** Unix seconds. */
  readonly issuedAt: number;
  /** Unix seconds, after `issuedAt`; 0 means never. */
  readonly expiresAt: number;
}

export function badDelegation(reason: string): SvcError {
  return new SvcError('bad_delegation', {
    message: `The delegation proof does not verify: ${reason}.`,
    details: { reason },
  });
}

/**
 * The scope that a caller means: 0 and an absent one mean network operations too. What is signed
 * always says it in full, so that one grant has one signing input.
 * @throws SvcError `bad_delegation` for any other scope
 */
export function scopeOf(scope: number | undefined): number {
  if (scope !== undefined && scope !== 0 && scope !== SCOPE_NETWORK) throw badDelegation('unknown scope');
  return SCOPE_NETWORK;
}

/**
 * Checks that a grant makes sense, whoever signed it.
 * @throws SvcError `bad_delegation` with the reason
 */
export function checkGrant(grant: Grant): void {
  if (grant.scope !== SCOPE_NETWORK) throw badDelegation('unknown scope');
  if (!isUint(grant.issuedAt, MAX_UNIX_S)) throw badDelegation('issued_at is not a Unix time in seconds');
  if (!isUint(grant.expiresAt, MAX_UNIX_S)) throw badDelegation('expires_at is not a Unix time in seconds');
  if (grant.expiresAt !== 0 && grant.expiresAt <= grant.issuedAt) throw badDelegation('it ends before it begins');
  if (!isUsablePublicKey(grant.operationalKey)) throw badDelegation('the operational key is not a usable Ed25519 key');
}

/** Whether a time is within the window of a grant, give or take the clocks. Unix seconds. */
export function isWindowOpen({ issuedAt, expiresAt }: Pick<Grant, 'issuedAt' | 'expiresAt'>, now: number): boolean {
  return now >= issuedAt - CLOCK_SKEW_S && (expiresAt === 0 || now <= expiresAt + CLOCK_SKEW_S);
}

/**
 * Checks that a grant is in force.
 * @param now Unix seconds
 * @throws SvcError `bad_delegation` with the reason
 */
export function checkWindow(grant: Grant, now: number): void {
  if (now < grant.issuedAt - CLOCK_SKEW_S) throw badDelegation('it is not valid yet');
  if (grant.expiresAt !== 0 && now > grant.expiresAt + CLOCK_SKEW_S) throw badDelegation('it has expired');
}
