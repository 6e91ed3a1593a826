/** One search of the nodes around a key for several who want something of them: what is read there, and what is put. */
import { Listeners } from '../../foundation/listeners.ts';
import type { Lookup, LookupAnswer } from './lookup.ts';

export class SharedLookup {
  readonly lookup: Lookup;
  readonly #answers: LookupAnswer[] = [];
  readonly #followers = new Listeners<[LookupAnswer]>();

  /** @param start begins the search, and has its answers told */
  constructor(start: (onAnswer: (answer: LookupAnswer) => void) => Lookup) {
    this.lookup = start((answer) => {
      this.#answers.push(answer);
      this.#followers.notify(answer);
    });
  }

  /** The answers so far, in the order in which they came. */
  get answers(): readonly LookupAnswer[] {
    return this.#answers;
  }

  /** Tells of each further answer. Returns how to stop. */
  follow(onAnswer: (answer: LookupAnswer) => void): () => void {
    return this.#followers.add(onAnswer);
  }
}
