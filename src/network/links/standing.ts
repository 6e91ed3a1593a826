/**
 * The links that stand, by the agent on the other node. When a newer delegation of it is met they
 * end: they were proven with one that counts no longer, perhaps by the thief of its key.
 */
import type { Duplex } from 'node:stream';
import type { Aid } from '../../foundation/identity/aid.ts';

export class StandingLinks {
  readonly #links = new Map<Aid, Set<Duplex>>();

  /** Agents with a link that stands. */
  get agents(): number {
    return this.#links.size;
  }

  /** Keeps a link in mind until it closes. */
  add(aid: Aid, link: Duplex): void {
    const links = this.#links.get(aid) ?? new Set();
    this.#links.set(aid, links.add(link));
    link.once('close', () => {
      links.delete(link);
      if (links.size === 0 && this.#links.get(aid) === links) this.#links.delete(aid);
    });
  }

  /** Ends the links with an agent. */
  end(aid: Aid): void {
    for (const link of this.#links.get(aid) ?? []) link.destroy();
  }
}
