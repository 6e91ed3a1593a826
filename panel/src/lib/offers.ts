/** Which services an agent offers, as far as this is known: their records are found by service, not by agent. */
import { MAX_NAMES_PER_CALL } from '../../../src/foundation/domain/directory.ts';
import { isServiceName } from '../../../src/foundation/domain/service-name.ts';
import type { directoryOperations } from '../../../src/operations/directory.ts';
import type { OutputOf } from '../../../src/operations/operation.ts';

export type Offer = OutputOf<typeof directoryOperations.discover>['entries'][number];

/** Offers from search results that are remembered. */
const MAX_SEEN = 500;

export class SeenOffers {
  /** By agent and service, the newest last. */
  readonly #seen = new Map<string, Offer>();

  /** Takes the results of a search. */
  note(entries: readonly Offer[]): void {
    for (const entry of entries) {
      const key = `${entry.aid} ${entry.service}`;
      this.#seen.delete(key);
      this.#seen.set(key, entry);
    }
    for (const key of [...this.#seen.keys()].slice(0, Math.max(0, this.#seen.size - MAX_SEEN))) this.#seen.delete(key);
  }

  /** What an agent was seen to offer and has not expired. */
  of(aid: string, now: number): Offer[] {
    return [...this.#seen.values()].filter((one) => one.aid === aid && Date.parse(one.expires_at) > now);
  }
}

/** What the searches of this page have found. */
export const seenOffers = new SeenOffers();

/**
 * Services of which the network is asked whether an agent offers them.
 * @param hints what the agent was seen to offer, is a favourite for, or says that it can do
 */
export function servicesToAsk(hints: readonly string[]): string[] {
  return [...new Set(hints.filter(isServiceName))].slice(0, MAX_NAMES_PER_CALL);
}

/** The offers of an agent, each service once: those that were just found count more than those seen before. */
export function offersOf(aid: string, found: readonly Offer[], seen: readonly Offer[]): Offer[] {
  const own = [...seen, ...found].filter((one) => one.aid === aid);
  const byService = new Map(own.map((one) => [one.service, one]));
  return [...byService.values()].toSorted((a, b) => (a.service < b.service ? -1 : 1));
}
