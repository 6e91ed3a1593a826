/**
 * The newest delegation seen of each agent: an older one that still verifies is refused, so that a
 * thief of an operational key is out as soon as its owner's newer delegation has been met. AIDs are free: a caller that
 * is not known yet is remembered only once it is let in.
 */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { LinksDependencies } from './types.ts';

/** Agents remembered; the least recently met one is forgotten first. */
export const MAX_AGENTS = 65_536;

interface FloorDependencies extends Pick<LinksDependencies, 'noteDelegation' | 'newestDelegation'> {
  /**
   * Told of a delegation that is newer than all that are remembered of its agent: also of the first
   * one, as those before it may have been forgotten.
   */
  raised?(aid: Aid, issuedAt: number): void;
}

export class DelegationFloor {
  readonly #newest = new LruCache<Aid, number>({ maxEntries: MAX_AGENTS });
  readonly #dependencies: FloorDependencies;

  constructor(dependencies: FloorDependencies = {}) {
    this.#dependencies = dependencies;
  }

  /** Unix seconds: an older `issuedAt` no longer counts. */
  of(aid: Aid): number {
    return Math.max(this.#newest.get(aid) ?? 0, this.#dependencies.newestDelegation?.(aid) ?? 0);
  }

  /** Remembers a verified delegation of a caller that was not let in yet, if it is known already. */
  meet(aid: Aid, issuedAt: number, source: string): void {
    if (this.of(aid) > 0) this.note(aid, issuedAt, source);
  }

  /**
   * Remembers a verified delegation.
   * @param source the address of a caller that was let in; null if this node called the agent
   */
  note(aid: Aid, issuedAt: number, source: string | null): void {
    const known = this.#newest.get(aid);
    if (known !== undefined && known >= issuedAt) return;
    this.#newest.set(aid, issuedAt);
    this.#dependencies.noteDelegation?.(aid, issuedAt, source);
    this.#dependencies.raised?.(aid, issuedAt);
  }
}
