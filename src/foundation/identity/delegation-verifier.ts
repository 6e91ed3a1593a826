/** Verifies delegation proofs and remembers which signatures were good: a proof comes again with every record. */
import { createHash } from 'node:crypto';
import { LruCache } from '../lru-cache.ts';
import { schemeOf } from './aid.ts';
import {
  type Delegation,
  encodeDelegation,
  verifyDelegationSignature,
  verifyDelegationSignatureAsync,
} from './delegation.ts';
import { checkWindow } from './grant.ts';

/** Good proofs that are remembered; one takes about 150 bytes. */
const MAX_REMEMBERED = 10_000;

interface DelegationVerifierOptions {
  /** At least 1. */
  readonly maxEntries?: number;
}

export class DelegationVerifier {
  /** Only good signatures are kept: a stranger's bad ones cannot push them out. */
  readonly #good: LruCache<string, true>;
  /** Proofs that another thread looks at right now. */
  readonly #running = new Map<string, Promise<void>>();
  #lastTurn: Promise<void> = Promise.resolve();

  constructor(options: DelegationVerifierOptions = {}) {
    this.#good = new LruCache({ maxEntries: options.maxEntries ?? MAX_REMEMBERED });
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

  /**
   * As `verify`, with the work on another thread; a wallet's proof is checked on this one, one in a
   * turn of the event loop.
   * @param now Unix seconds
   * @throws SvcError `bad_delegation` with the reason
   */
  async verifyAsync(d: Delegation, now: number): Promise<void> {
    checkWindow(d, now);
    const key = keyOf(d);
    if (this.#good.get(key) !== true) await (this.#running.get(key) ?? this.#start(key, d));
  }

  #start(key: string, d: Delegation): Promise<void> {
    const native = schemeOf(d.agent) === 'native';
    const running = (native ? verifyDelegationSignatureAsync(d) : this.#inTurn(() => verifyDelegationSignature(d)))
      .then(() => this.#good.set(key, true))
      .finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  /** Runs one piece of work a turn: recovering a wallet's key takes a millisecond or two. */
  #inTurn(work: () => void): Promise<void> {
    const done = this.#lastTurn.then(nextTurn).then(work);
    this.#lastTurn = done.catch(() => {});
    return done;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function keyOf(d: Delegation): string {
  return createHash('sha256').update(encodeDelegation(d)).digest('base64');
}
