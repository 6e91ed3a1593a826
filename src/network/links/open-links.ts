/**
 * The links that stand, by the agent on the other node. When a newer delegation of it is met they
 * end: they were proven with one that counts no longer, perhaps by the thief of its key.
 */
import type { Duplex } from 'node:stream';
import type { Aid } from '../../foundation/identity/aid.ts';

export class OpenLinks {
  /** The links of each agent, with the `issuedAt` of the delegation that it was proven with: Unix seconds. */
  readonly #links = new Map<Aid, Map<Duplex, number>>();

  /** Agents with a link that stands. */
  get agents(): number {
    return this.#links.size;
  }

  /**
   * Keeps a link in mind until it closes.
   * @param issuedAt of the delegation that the agent was proven with, Unix seconds
   */
  add(aid: Aid, link: Duplex, issuedAt: number): void {
    const links = this.#links.get(aid) ?? new Map<Duplex, number>();
    this.#links.set(aid, links.set(link, issuedAt));
    link.once('close', () => {
      links.delete(link);
      if (links.size === 0 && this.#links.get(aid) === links) this.#links.delete(aid);
    });
  }

  /** Ends the links with an agent that were proven with a delegation older than `issuedAt`, Unix seconds. */
  endOlder(aid: Aid, issuedAt: number): void {
    // protocol-links.md, step 14
    for (const [link, provenWith] of this.#links.get(aid) ?? []) if (provenWith < issuedAt) link.destroy();
  }
}
