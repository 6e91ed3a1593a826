/** The content of a delegation proof: the key that may act, the agent and the time. */
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
    message: `Invalid delegation proof: ${reason}.`,
    details: { reason },
  });
}

/**
 * The scope of a request: 0 or undefined also mean network operations. The signed grant always contains the scope, so
 * that one grant has one signing input.
 * @throws SvcError `bad_delegation` for any other scope
 */
export function scopeOf(scope: number | undefined): number {
  if (scope !== undefined && scope !== 0 && scope !== SCOPE_NETWORK) throw badDelegation('unknown scope');
  return SCOPE_NETWORK;
}

/**
 * Checks that a grant is valid, regardless of its signature.
 * @throws SvcError `bad_delegation` with the reason
 */
export function checkGrant(grant: Grant): void {
  if (grant.scope !== SCOPE_NETWORK) throw badDelegation('unknown scope');
  if (!isUint(grant.issuedAt, MAX_UNIX_S)) throw badDelegation('issued_at is not a Unix time in seconds');
  if (!isUint(grant.expiresAt, MAX_UNIX_S)) throw badDelegation('expires_at is not a Unix time in seconds');
  if (grant.expiresAt !== 0 && grant.expiresAt <= grant.issuedAt)
    throw badDelegation('expires_at is not after issued_at');
  if (!isUsablePublicKey(grant.operationalKey)) throw badDelegation('the operational key is not a usable Ed25519 key');
}

/** True if `now` is in the time window of a grant, with tolerance for clock differences. Unix seconds. */
export function isWindowOpen({ issuedAt, expiresAt }: Pick<Grant, 'issuedAt' | 'expiresAt'>, now: number): boolean {
  return now >= issuedAt - CLOCK_SKEW_S && (expiresAt === 0 || now <= expiresAt + CLOCK_SKEW_S);
}

/**
 * Checks that a grant is valid at a given time.
 * @param now Unix seconds
 * @throws SvcError `bad_delegation` with the reason
 */
export function checkWindow(grant: Grant, now: number): void {
  if (now < grant.issuedAt - CLOCK_SKEW_S) throw badDelegation('it is not valid yet');
  if (grant.expiresAt !== 0 && now > grant.expiresAt + CLOCK_SKEW_S) throw badDelegation('it has expired');
}
