/** The helpers of the last start, until they help again or others are chosen: whoever keeps the same has nothing to tell. */
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import type { RememberedHelper } from './remembered-helpers.ts';

interface FormerHelpersDependencies {
  readonly clock: Clock;
  /** Says hello to a node, over a connection that stays; rejects where it does not help. */
  readonly hello: (node: NodeAt, signal: AbortSignal) => Promise<unknown>;
  /** Told whenever one of them has answered, or has not. */
  readonly heard: () => void;
  /** How long one of them is waited for, milliseconds. */
  readonly answerMs: number;
}

export class FormerHelpers {
  readonly #deps: FormerHelpersDependencies;
  /** The best first. */
  #helpers: readonly RememberedHelper[];
  readonly #asked = new Set<RememberedHelper>();
  readonly #answered = new Set<RememberedHelper>();

  constructor(helpers: readonly RememberedHelper[], dependencies: FormerHelpersDependencies) {
    this.#helpers = helpers;
    this.#deps = dependencies;
  }

  /** Asks those who have not answered, unless they are asked just now: before there is a network nobody answers. */
  ask(): void {
    for (const helper of this.#helpers)
      if (!this.#asked.has(helper) && !this.#answered.has(helper)) detach(this.#ask(helper));
  }

  /** Whether one of them may still answer. */
  get isAsking(): boolean {
    return this.#asked.size > 0;
  }

  /** Those who have answered, the best first; it knows of none any more then. */
  take(): readonly RememberedHelper[] {
    const answered = this.#helpers.filter((helper) => this.#answered.has(helper));
    this.#helpers = [];
    return answered;
  }

  /** Whether there are any left. */
  get some(): boolean {
    return this.#helpers.length > 0;
  }

  async #ask(helper: RememberedHelper): Promise<void> {
    this.#asked.add(helper);
    using limit = awakeTimeout(this.#deps.clock, this.#deps.answerMs);
    try {
      await this.#deps.hello(helper.at, limit.signal);
      this.#answered.add(helper);
    } catch {
      // It is gone, or there is no network yet.
    }
    this.#asked.delete(helper);
    this.#deps.heard();
  }
}
