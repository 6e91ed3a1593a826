/** Verifies delegation proofs and remembers which signatures were good: a proof comes again with every record. */
import { hash } from 'node:crypto';
import type { SvcError } from '../errors.ts';
import { LruCache } from '../lru-cache.ts';
import { Semaphore } from '../semaphore.ts';
import { SingleFlight } from '../single-flight.ts';
import { nativePublicKey, schemeOf } from './aid.ts';
import { type Delegation, delegationSigningInput, encodeDelegation } from './delegation.ts';
import { badDelegation, checkGrant, checkWindow } from './grant.ts';
import { verifySignature, verifySignatureAsync } from './keys.ts';
import { verifyWalletDelegation } from './wallet.ts';

/** Good proofs that are remembered; one takes about 150 bytes. */
const MAX_REMEMBERED = 10_000;

/**
 * Verifies the lasting part of a proof: that it makes sense and that the agent signed it. When it
 * is in force is `checkWindow`'s matter.
 * @throws SvcError `bad_delegation` with the reason
 */
export function verifyDelegationSignature(d: Delegation): void {
  checkGrant(d);
  const master = nativePublicKey(d.agent);
  if (master === null) return verifyWalletDelegation(d);
  if (d.text !== undefined || !verifySignature(master, delegationSigningInput(d), d.signature)) throw notTheAgents();
}

function notTheAgents(): SvcError {
  return badDelegation("the signature is not the agent's");
}

/**
 * Verifies a proof at a time: window, scope, signer and signature.
 * @param now Unix seconds
 * @throws SvcError `bad_delegation` with the reason
 */
export function verifyDelegation(d: Delegation, now: number): void {
  checkWindow(d, now);
  verifyDelegationSignature(d);
}

export class DelegationVerifier {
  /** Only good signatures are kept: a stranger's bad ones cannot push them out. */
  readonly #good: LruCache<string, true>;
  /** Proofs that another thread looks at right now. */
  readonly #checks = new SingleFlight<void>();
  readonly #wallets = new Semaphore(1);

  constructor({ maxEntries = MAX_REMEMBERED }: { readonly maxEntries?: number } = {}) {
    this.#good = new LruCache({ maxEntries });
  }

  /**
   * As `verifyDelegation`. The window is looked at every time.
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

  /** True where `verify` takes a signature at most, and no wallet's: those take twenty times as long. */
  isFastToVerify({ agent }: Delegation): boolean {
    return schemeOf(agent) === 'native';
  }

  /**
   * As `verify`, with the work on another thread; a wallet's proof is checked on this one, one in a
   * turn of the event loop.
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

  /** Runs one piece of work a turn: recovering a wallet's key takes a millisecond or two. */
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
