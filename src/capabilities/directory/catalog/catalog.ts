/** Shows the agents of this node, and finds those of others, in the form that registries of agents have agreed on. */
import type { Clock } from '../../../foundation/clock.ts';
import { deadline } from '../../../foundation/deadline.ts';
import { MAX_CATALOG_AGENTS, MAX_PROVIDERS } from '../../../foundation/domain/directory.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { Aid } from '../../../foundation/identity/aid.ts';
import type { Directory } from '../directory.ts';
import type { DiscoveryEntry, Search } from '../discovery.ts';
import { type CatalogEntry, type CatalogOffer, catalogHost, entriesOf, registryEntry, registryUrl } from './entries.ts';
import { type Filter, fits, namesIn, scoreOf } from './query.ts';

/** Milliseconds after which a search answers with what was found until then: its clients wait five seconds. */
const CATALOG_SEARCH_MS = 3000;

export interface CatalogDependencies {
  readonly nodeAid: Aid;
  readonly clock: Clock;
  readonly directory: Pick<Directory, 'summary' | 'services'>;
  /** The first agents here, in the order of their registration. */
  agents(limit: number): readonly Aid[];
  discover(search: Search): Promise<readonly DiscoveryEntry[]>;
  /** Address of this node's API, without a slash at its end. */
  api(): string;
}

export interface CatalogSearch {
  readonly text: string;
  readonly filter: Filter;
  readonly pageSize: number;
  /** Where the page begins. */
  readonly offset: number;
  readonly signal?: AbortSignal;
}

export interface FoundEntry extends CatalogEntry {
  /** How much of the text it answers, 0 to `MAX_SCORE`. */
  readonly score: number;
  /** The search that found it. */
  readonly source: string;
}

export class Catalog {
  readonly #deps: CatalogDependencies;

  constructor(dependencies: CatalogDependencies) {
    this.#deps = dependencies;
  }

  /** The published agents of this node, and where it answers searches. */
  manifest() {
    const { nodeAid } = this.#deps;
    const api = this.#deps.api();
    const entries = this.#ownOffers().flatMap((offer) => entriesOf(offer, api));
    return {
      specVersion: '1.0' as const,
      host: catalogHost(nodeAid),
      entries: [...entries, registryEntry(nodeAid, api)],
    };
  }

  /**
   * What is offered here and on the network that a text may mean, the best first.
   * @returns a page of it, and where the next one begins; null behind the last
   * @throws SvcError `cancelled`
   */
  async search({ text, filter, pageSize, offset, signal }: CatalogSearch) {
    const api = this.#deps.api();
    const found = [...this.#ownOffers(), ...(await this.#discover(text, signal))];
    const byIdentifier = new Map<string, FoundEntry>();
    for (const offer of found) {
      const score = scoreOf(offer, text);
      if (score === 0) continue;
      for (const entry of entriesOf(offer, api)) {
        if (byIdentifier.has(entry.identifier) || !fits(entry, filter)) continue;
        byIdentifier.set(entry.identifier, { ...entry, score, source: registryUrl(api) });
      }
    }
    const all = [...byIdentifier.values()].sort((a, b) => b.score - a.score || (a.identifier < b.identifier ? -1 : 1));
    const end = offset + pageSize;
    return { results: all.slice(offset, end), next: end < all.length ? end : null };
  }

  #ownOffers(): CatalogOffer[] {
    const { directory } = this.#deps;
    return this.#deps.agents(MAX_CATALOG_AGENTS).flatMap((aid): CatalogOffer[] => {
      const { published, name, profile } = directory.summary(aid);
      // Whoever is held back from the network is no more told here.
      if (!published) return [];
      const offers = directory.services(aid).map((offer) => ({ ...offer, aid, meta: offer.meta ?? {} }));
      if (offers.length > 0) return offers;
      const { brief = '', protocols = [], skills = [], meta = {} } = profile ?? {};
      return [{ aid, service: null, name, brief, protocols, tags: skills, meta }];
    });
  }

  /** What the network has under the names that a text may mean, as far as it answers in time. */
  async #discover(text: string, signal: AbortSignal | undefined): Promise<DiscoveryEntry[]> {
    using limit = deadline(this.#deps.clock, CATALOG_SEARCH_MS, signal);
    const looks = namesIn(text).map(async (name) => {
      try {
        const any = { protocols: [], tags: [], limit: MAX_PROVIDERS, signal: limit.signal };
        return await this.#deps.discover({ services: [name], ...any });
      } catch (error) {
        // One name that nobody answers for takes nothing from the others.
        if (signal?.aborted === true || !(error instanceof SvcError)) throw error;
        return [];
      }
    });
    return (await Promise.all(looks)).flat();
  }
}
