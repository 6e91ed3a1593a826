/** Verifies delegation proofs and caches valid ones, because every record contains one. */
import { hash } from 'node:crypto';
import { Semaphore, SingleFlight } from '../concurrency.ts';
import type { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { nativePublicKey, schemeOf } from './aid.ts';
import { type Delegation, delegationSigningInput, encodeDelegation } from './delegation.ts';
import { badDelegation, checkGrant, checkWindow } from './grant.ts';
import { verifySignature, verifySignatureAsync } from './keys.ts';
import { verifyWalletDelegation } from './wallet.ts';

/** Maximum number of cached valid proofs, about 150 bytes each. */
const MAX_REMEMBERED = 10_000;

/**
 * Verifies everything about a proof except its time: that the grant is valid and that the agent signed it. Use
 * `checkWindow` for the time.
 * @throws SvcError `bad_delegation` with the reason
 */
export function verifyDelegationSignature(d: Delegation): void {
  checkGrant(d);
  const master = nativePublicKey(d.agent);
  if (master === null) return verifyWalletDelegation(d);
  if (d.text !== undefined || !verifySignature(master, delegationSigningInput(d), d.signature)) throw notTheAgents();
}

function notTheAgents(): SvcError {
  return badDelegation('the agent did not sign it');
}

/**
 * Verifies a proof at a given time: window, scope, signer and signature.
 * @param now Unix seconds
 * @throws SvcError `bad_delegation` with the reason
 */
export function verifyDelegation(d: Delegation, now: number): void {
  checkWindow(d, now);
  verifyDelegationSignature(d);
}

export class DelegationVerifier {
  /** Contains only valid signatures, so that invalid ones of strangers cannot evict them. */
  readonly #good: LruCache<string, true>;
  /** Proofs that another thread is verifying. */
  readonly #checks = new SingleFlight<void>();
  readonly #wallets = new Semaphore(1);

  constructor({ maxEntries = MAX_REMEMBERED }: { readonly maxEntries?: number } = {}) {
    this.#good = new LruCache({ maxEntries });
  }

  /**
   * Like `verifyDelegation`. The time window is checked on every call.
   * @param now Unix seconds
   * @throws SvcError `bad_delegation` with the reason
   */
  verify(d: Delegation, now: number): void {
    checkWindow(d, now);
    const key = keyOf(d);
    if (this.#good.get(key) === true) return;
    verifyDelegationSignature(d);
    this.#good.set(key, true);
  }

  /** True if `verify` costs at most one Ed25519 signature. A wallet signature takes twenty times as long. */
  isFastToVerify({ agent }: Delegation): boolean {
    return schemeOf(agent) === 'native';
  }

  /**
   * Like `verify`, but on another thread. Wallet proofs are verified on this thread, one per turn of the event loop.
   * @param now Unix seconds
   * @throws SvcError `bad_delegation` with the reason
   */
  async verifyAsync(d: Delegation, now: number): Promise<void> {
    checkWindow(d, now);
    const key = keyOf(d);
    if (this.#good.get(key) !== true) await this.#checks.run(key, () => this.#check(key, d));
  }

  async #check(key: string, d: Delegation): Promise<void> {
    checkGrant(d);
    const master = nativePublicKey(d.agent);
    if (master === null) await this.#inTurn(() => verifyWalletDelegation(d));
    else if (d.text !== undefined || !(await verifySignatureAsync(master, delegationSigningInput(d), d.signature)))
      throw notTheAgents();
    this.#good.set(key, true);
  }

  /** Runs one task per turn: recovering a wallet's key takes a millisecond or two. */
  #inTurn(work: () => void): Promise<void> {
    return this.#wallets.run(async () => {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      work();
    });
  }
}

function keyOf(d: Delegation): string {
  return hash('sha256', encodeDelegation(d), 'base64');
}
