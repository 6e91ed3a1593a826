/** The known services of an agent. The network finds records by service, not by agent. */
import { MAX_NAMES_PER_CALL } from '../../../src/foundation/domain/directory.ts';
import { isServiceName } from '../../../src/foundation/domain/services.ts';
import type { directoryOperations } from '../../../src/operations/directory.ts';
import type { OutputOf } from '../../../src/operations/operation.ts';

export type Offer = OutputOf<typeof directoryOperations.discover>['entries'][number];

/** Maximum number of cached search results. */
const MAX_SEEN = 500;

export class SeenOffers {
  /** By agent and service, newest last. */
  readonly #seen = new Map<string, Offer>();

  /** Adds the results of a search. */
  note(entries: readonly Offer[]): void {
    for (const entry of entries) {
      const key = `${entry.aid} ${entry.service}`;
      this.#seen.delete(key);
      this.#seen.set(key, entry);
    }
    for (const key of [...this.#seen.keys()].slice(0, Math.max(0, this.#seen.size - MAX_SEEN))) this.#seen.delete(key);
  }

  /** The services of an agent in earlier results, unless they have expired. */
  of(aid: string, now: number): Offer[] {
    return [...this.#seen.values()].filter((one) => one.aid === aid && Date.parse(one.expires_at) > now);
  }
}

/** The search results of this page. */
export const seenOffers = new SeenOffers();

/**
 * The services to search for, to find out whether an agent offers them.
 *
 * @param hints service names from earlier results, favorites and the profile of the agent
 */
export function servicesToAsk(hints: readonly string[]): string[] {
  return [...new Set(hints.filter(isServiceName))].slice(0, MAX_NAMES_PER_CALL);
}

/** The services of an agent, each once. New results replace earlier ones. */
export function offersOf(aid: string, found: readonly Offer[], seen: readonly Offer[]): Offer[] {
  const own = [...seen, ...found].filter((one) => one.aid === aid);
  const byService = new Map(own.map((one) => [one.service, one]));
  return [...byService.values()].toSorted((a, b) => (a.service < b.service ? -1 : 1));
}
